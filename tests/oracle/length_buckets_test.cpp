// A run with --group-by-length against PyTorch's steps on the same rows in the documented order
// (make_length_buckets.py).
#include <fstream>

#include "engine/train_model.h"
#include "golden_curve.h"
#include "scratch_folder.h"

namespace headroom::test {
namespace {

void write_rows(const Json& rows, const std::filesystem::path& path) {
  std::ofstream out(path);
  for (const Json& row : rows) out << Json{{"input_ids", row}, {"labels", row}}.dump() << "\n";
}

class LengthBuckets : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { write_rows(file.at("rows"), scratch.path / "rows.jsonl"); }
  TrainOptions options() const {
    TrainOptions options = with_optimizer_of(file, plain_options(golden));
    options.schedule.lr_scheduler_type = "constant";
    options.techniques.group_by_length = true;
    options.seed = file.at("seed").get<uint64_t>();
    options.data.global_batch_size = file.at("global_batch_size").get<int64_t>();
    options.data.micro_batch_size = GetParam();
    options.data.max_seq_length = file.at("max_seq_length").get<int64_t>();
    options.schedule.max_steps = static_cast<int64_t>(file.at("steps").size());
    options.data.train = {scratch.path / "rows.jsonl"};
    options.saving.output_dir = scratch.path / "run";
    return options;
  }
  const Json file = read_json(std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/oracle/length_buckets.json");
  const GoldenCase golden = GoldenCase::open(file.at("case").get<std::string>());
  const ScratchFolder scratch{"length-buckets"};
};

TEST_P(LengthBuckets, StepsAreTorchsOnTheSameRows) {
  const Json& steps = file.at("steps");
  double worst = 0;
  TrainEvents events;
  events.step = [&](const StepReport& report) {
    const Json& row = steps.at(static_cast<size_t>(report.step - 1));
    EXPECT_EQ(report.tokens, row.at("tokens").get<int64_t>()) << "step " << report.step;
    worst = std::max(worst, expect_step(row, report.loss, report.grad_norm));
  };
  RunControl control;
  const TrainResult result = train_model(options(), events, control);
  EXPECT_EQ(result.steps, static_cast<int64_t>(steps.size()));
  EXPECT_EQ(result.plan.choices.buckets, (std::vector<int64_t>{16, 32, 48}));
  RecordProperty("worst_loss", fmt::format("{:.1e}", worst));
}

INSTANTIATE_TEST_SUITE_P(MicroBatches, LengthBuckets, testing::Values(1, 2), testing::PrintToStringParamName());

}  // namespace
}  // namespace headroom::test
