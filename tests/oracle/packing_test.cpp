// Packed sequences against PyTorch's numbers (make_packing.py) and against the same rows unpacked.
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/batch_reader.h"
#include "passes/packing.h"
#include "planner/technique.h"
#include "training_run.h"

namespace headroom::test {
namespace {

using Rows = std::vector<std::vector<int32_t>>;

struct PackedCase {
  GoldenCase packed;  // its sequences, with the starting position of each token's row
  GoldenCase single;  // the same rows, one per sequence
  Json expected;
};

// Appends a row to a sequence; all tokens but the first are targets.
void append(std::vector<int32_t>& ids, std::vector<int32_t>& labels, const std::vector<int32_t>& row) {
  ids.insert(ids.end(), row.begin(), row.end());
  labels.insert(labels.end(), row.begin(), row.end());
  labels[labels.size() - row.size()] = -100;
}

void pad(GoldenCase& golden, size_t length) {
  for (std::vector<int32_t>& row : golden.ids) row.resize(length, 0);
  for (std::vector<int32_t>& row : golden.labels) row.resize(length, -100);
}

PackedCase open_packed(const std::string& name) {
  const GoldenCase golden = GoldenCase::open(name);
  const Json file = read_json(golden.folder.parent_path() / "packing.json");
  PackedCase out{golden, golden, file.at("cases").at(name)};
  for (GoldenCase* made : {&out.packed, &out.single}) {
    made->ids.clear(), made->labels.clear();
    made->targets = out.expected.at("targets").get<int64_t>();
  }
  const auto length = file.at("length").get<size_t>();
  for (const Json& sequence : file.at("sequences")) {
    std::vector<int32_t> ids, labels, starts;
    for (const Json& part : sequence) {
      const auto& whole = golden.ids.at(part.at(0).get<size_t>());
      const auto first = whole.begin() + part.at(1).get<int64_t>();
      const std::vector<int32_t> row(first, first + part.at(2).get<int64_t>());
      starts.resize(starts.size() + row.size(), static_cast<int32_t>(starts.size()));
      append(ids, labels, row);
      append(out.single.ids.emplace_back(), out.single.labels.emplace_back(), row);
    }
    while (starts.size() < length) starts.push_back(static_cast<int32_t>(starts.size()));
    out.packed.ids.push_back(ids), out.packed.labels.push_back(labels), out.packed.starts.push_back(starts);
  }
  pad(out.packed, length);
  pad(out.single, length);
  return out;
}

TrainOptions packing_options(const GoldenCase& golden) {
  TrainOptions options = plain_options(golden);
  options.techniques.packing = true;
  return options;
}

double cosine_product(const std::vector<float>& values) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += static_cast<double>(values[i]) * std::cos(static_cast<double>(i));
  return sum;
}

class Packing : public testing::TestWithParam<const char*> {};

TEST_P(Packing, HasTheLossAndGradientsOfPyTorch) {
  const PackedCase golden = open_packed(GetParam());
  const StepOutcome found = TrainingRun(golden.packed, packing_options(golden.packed)).step();
  EXPECT_EQ(found.targets, static_cast<double>(golden.packed.targets));
  const double loss = golden.expected.at("loss").get<double>();
  EXPECT_NEAR(found.loss, loss, 1e-5 * loss);
  const Json& gradients = golden.expected.at("gradients");
  EXPECT_EQ(found.gradients.size(), gradients.size());
  for (const auto& [name, gradient] : found.gradients) {
    const double norm = gradients.at(name).at(0).get<double>(), product = gradients.at(name).at(1).get<double>();
    EXPECT_NEAR(l2_norm(gradient), norm, 1e-4 * norm) << name;
    EXPECT_NEAR(cosine_product(gradient), product, 1e-4 * norm * std::sqrt(static_cast<double>(gradient.size())))
        << name;
  }
}

TEST_P(Packing, IsTheSameRowsOneByOne) {
  const PackedCase golden = open_packed(GetParam());
  TrainingRun packed(golden.packed, packing_options(golden.packed)),
      single(golden.single, plain_options(golden.single));
  const StepOutcome some = packed.step(), all = single.step();
  EXPECT_NEAR(some.loss, all.loss, 2e-6 * all.loss);
  EXPECT_NEAR(packed.evaluate(), single.evaluate(), 2e-6 * all.loss);
  for (const auto& [name, gradient] : some.gradients)
    EXPECT_LT(l2_distance(gradient, all.gradients.at(name)), 2e-5 * l2_norm(all.gradients.at(name)) + 1e-7) << name;
}

TEST_P(Packing, RecomputationAndMicroBatchesKeepTheSegments) {
  const PackedCase golden = open_packed(GetParam());
  TrainOptions options = packing_options(golden.packed);
  const StepOutcome plain = TrainingRun(golden.packed, options).step();
  for (const char* keep : {"drop-cheap", "drop-attention", "block-input"}) {
    options.techniques.pins["recompute"] = keep;
    const StepOutcome again = TrainingRun(golden.packed, options).step();
    EXPECT_EQ(again.loss, plain.loss) << keep;
    EXPECT_EQ(again.gradients, plain.gradients) << keep;
  }
  options.data.micro_batch_size = 1;
  const StepOutcome halves = TrainingRun(golden.packed, options).step();
  EXPECT_NEAR(halves.loss, plain.loss, 1e-6 * plain.loss);
  for (const auto& [name, gradient] : halves.gradients)
    EXPECT_LT(l2_distance(gradient, plain.gradients.at(name)), 2e-5 * l2_norm(plain.gradients.at(name)) + 1e-7) << name;
}

// A plan whose peak is in the training step, since saving needs almost nothing.
Plan plan_of(const GoldenCase& golden, const TrainOptions& options) {
  PlanRequest request = training_request(options, golden.model);
  request.staging_bytes = 64;
  return search_training_plan(request).plan;
}

// The starts are in the plan's bytes, and nothing else is added.
TEST_P(Packing, IsInThePlan) {
  const PackedCase golden = open_packed(GetParam());
  const Plan with = plan_of(golden.packed, packing_options(golden.packed));
  const Plan without = plan_of(golden.packed, plain_options(golden.packed));
  EXPECT_TRUE(with.choices.flag("packing"));
  EXPECT_FALSE(without.choices.flag("packing"));
  const int64_t starts = golden.packed.rows() * golden.packed.row_length() * 4;
  EXPECT_EQ(with.breakdown.data, without.breakdown.data + starts);
  EXPECT_EQ(with.lower_bound_bytes, without.lower_bound_bytes + starts);
}

// The memory of a batch: ids, labels and starts in the arena, as data; the reader's memory in the process.
TEST_P(Packing, LoaderIsInThePlan) {
  const PackedCase golden = open_packed(GetParam());
  const TrainOptions options = packing_options(golden.packed);
  const Plan plan = plan_of(golden.packed, options);
  EXPECT_EQ(plan.process.data, BatchReader::memory_bytes(options.data.global_batch_size));
  int64_t batch = 0;
  for (const Instruction& instruction : plan.program("train_step")->instructions)
    if (instruction.kind == InstructionKind::call && op_name(*instruction.op) == "next_batch")
      for (const Operand& output : instruction.outputs) batch += storage_bytes(output.type);
  EXPECT_EQ(batch, 3 * golden.packed.rows() * golden.packed.row_length() * 4);
  EXPECT_GE(plan.breakdown.data, 2 * batch / 3);  // only the embedding's gradient reads the ids again
}

INSTANTIATE_TEST_SUITE_P(Families, Packing,
                         testing::Values("llama_gqa_tied", "gpt2", "mistral_window", "gemma3", "qwen3", "gpt_neox"));

TEST(PackingRefusal, EncodersAndUnaskedPlansAreNotPacked) {
  const GoldenCase encoder = GoldenCase::open("bert_masked");
  TrainOptions options = plain_options(encoder);
  options.techniques.packing = true;
  EXPECT_THROW(training_request(options, encoder.model), Error);
  options.techniques.packing = false;
  options.techniques.allow = {"data-order"};
  EXPECT_FALSE(asked_for(training_request(options, encoder.model), kPacking));

  const GoldenCase decoder = GoldenCase::open("qwen3");
  options = plain_options(decoder);
  EXPECT_FALSE(asked_for(training_request(options, decoder.model), kPacking));
  options.techniques.allow = {"lossy"};
  EXPECT_FALSE(asked_for(training_request(options, decoder.model), kPacking));
  options.techniques.allow = {"data-order"};
  EXPECT_TRUE(asked_for(training_request(options, decoder.model), kPacking));
  options.techniques.allow = {"packing"};
  EXPECT_TRUE(asked_for(training_request(options, decoder.model), kPacking));
  options.techniques.pins["packing"] = "off";
  EXPECT_FALSE(asked_for(training_request(options, decoder.model), kPacking));
}

}  // namespace
}  // namespace headroom::test
