// DoRA against PEFT: losses, gradient norms and the adapter after ten AdamW steps from PEFT's own files.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "engine/merge.h"
#include "golden_curve.h"
#include "scratch_folder.h"
#include "weights/adapter.h"
#include "weights/adapter_files.h"
#include "weights/weights.h"

namespace headroom::test {
namespace {

struct DoraCase {
  explicit DoraCase(const std::string& name) : golden(GoldenCase::open(name)), folder(golden.folder / "dora") {
    options = plain_options(golden);
    options.techniques.lora = lora_options(open_adapter(folder), golden.model.spec);
    options.schedule.learning_rate = curve.at("learning_rate").get<double>();
    options.techniques.max_grad_norm = curve.at("max_grad_norm").get<double>();
  }
  GoldenCase golden;
  std::filesystem::path folder;
  Json curve = read_json(folder / "curve.json");
  double loss = read_json(folder / "expected.json").at("loss").get<double>();
  TrainOptions options;
};

class DoraAsPeft : public testing::TestWithParam<const char*> {
 protected:
  DoraCase dora{GetParam()};
  std::vector<double> losses(int steps = 3) {
    TrainingRun run(dora.golden, dora.options, dora.folder);
    std::vector<double> out;
    for (int step = 0; step < steps; ++step) out.push_back(run.step().loss);
    return out;
  }
};

TEST_P(DoraAsPeft, InFp32) {
  EXPECT_TRUE(dora.options.techniques.lora.decomposed);
  TrainingRun run(dora.golden, dora.options, dora.folder);
  EXPECT_NEAR(run.evaluate(), dora.loss, 1e-5 * dora.loss);
  RecordProperty("worst", fmt::format("{:.2g}", expect_curve(dora.curve.at("fp32"), run)));
  const ScratchFolder scratch("dora");
  run.save_adapter(scratch.path);
  const SafetensorsFile final = SafetensorsFile::open(dora.folder / "final.safetensors"),
                        written = SafetensorsFile::open(scratch.path / "adapter_model.safetensors");
  EXPECT_EQ(written.tensors().size(), final.tensors().size());
  for (const auto& [name, tensor] : final.tensors()) {
    ASSERT_NE(written.find(name), nullptr) << name;
    ASSERT_EQ(written.find(name)->shape, tensor.shape) << name;
    const std::vector<float> theirs = read_floats(final, tensor), ours = read_floats(written, *written.find(name));
    for (size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], theirs[i], 5e-4) << name << " " << i;
  }
}

TEST_P(DoraAsPeft, InBf16Mixed) {
  dora.options.techniques.precision = "bf16-mixed";
  const std::vector<double> found = losses(10);
  for (size_t i = 0; i < found.size(); ++i) {
    const double loss = dora.curve.at("fp32")[i].at("loss").get<double>();
    EXPECT_NEAR(found[i], loss, 0.015 * loss) << "step " << i + 1;
  }
}

TEST_P(DoraAsPeft, RecomputationChangesNoBit) {
  for (const char* precision : {"32-true", "bf16-mixed"}) {
    dora.options.techniques.precision = precision;
    dora.options.techniques.pins["recompute"] = "off";
    const std::vector<double> kept = losses();
    dora.options.techniques.pins["recompute"] = "block-input";
    EXPECT_EQ(losses(), kept);
  }
}

TEST_P(DoraAsPeft, MicroBatchesAddUp) {
  const std::vector<double> whole = losses();
  dora.options.data.micro_batch_size = 1;
  const std::vector<double> cut = losses();
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(cut[i], whole[i], 1e-5 * whole[i]);
}

// Moving along the gradient of some trained vectors by h lowers the loss by h |g|. The lengths are constants to the
// gradient, so that of A and B is not the loss's; that of the magnitudes is.
TEST_P(DoraAsPeft, GradientsOfMagnitudesAreThoseOfTheLoss) {
  dora.options.schedule.learning_rate = 0;
  TrainingRun run(dora.golden, dora.options, dora.folder);
  const StepOutcome outcome = run.step();
  double squares = 0;
  for (const auto& [name, gradient] : outcome.gradients)
    if (is_magnitude_name(name)) squares += l2_norm(gradient) * l2_norm(gradient);
  const double norm = std::sqrt(squares), h = 1e-3;
  ASSERT_GT(norm, 0);
  const auto loss_at = [&](double distance) {
    TrainingRun moved(dora.golden, dora.options, dora.folder);
    for (const auto& [name, gradient] : outcome.gradients)
      if (is_magnitude_name(name)) moved.move(name, gradient, distance / norm);
    return moved.step().loss;
  };
  EXPECT_NEAR((loss_at(h) - loss_at(-h)) / (2 * h), norm, 0.02 * norm);
}

TEST_P(DoraAsPeft, AMergedModelHasTheLossOfTheTrainedAdapter) {
  const ScratchFolder scratch("dora");
  TrainingRun run(dora.golden, dora.options, dora.folder);
  for (int step = 0; step < 3; ++step) run.step();
  std::filesystem::create_directory(scratch.path / "adapter");
  run.save_adapter(scratch.path / "adapter");
  merge_adapter({dora.golden.folder / "model", scratch.path / "adapter", scratch.path / "merged", "float32"});
  GoldenCase merged = GoldenCase::open(GetParam());
  merged.model = open_model(scratch.path / "merged");
  const double expected = run.evaluate();
  EXPECT_NEAR(TrainingRun(merged, plain_options(merged)).evaluate(), expected, 1e-5 * expected);
}

INSTANTIATE_TEST_SUITE_P(Cases, DoraAsPeft, testing::Values("llama_gqa_tied", "qwen2_bias"));

class Dora : public testing::Test {
 protected:
  GoldenCase golden = GoldenCase::open("llama_gqa_tied");
  TrainOptions options = plain_options(golden);
  void SetUp() override {
    options.techniques.lora.rank = 4;
    options.techniques.lora.decomposed = true;
  }
  void expect_refused(const std::string& what) {
    try {
      TrainingRun run(golden, options);
      ADD_FAILURE() << "no error: " << what;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << e.what();
      EXPECT_FALSE(e.remedy().empty());
    }
  }
};

TEST_F(Dora, AFreshAdapterChangesNothing) {
  TrainingRun run(golden, options);
  const double before = TrainingRun(golden, plain_options(golden)).step().loss;
  EXPECT_NEAR(run.step().loss, before, 1e-6 * before);
  const std::string weight = "model.layers.0.self_attn.q_proj.weight";
  const std::vector<float> values = run.parameter(weight), magnitude = run.parameter(magnitude_name(weight));
  const size_t width = values.size() / magnitude.size();
  for (size_t row = 0; row < magnitude.size(); ++row) {
    double squares = 0;
    for (size_t i = 0; i < width; ++i) squares += std::pow(static_cast<double>(values[row * width + i]), 2);
    EXPECT_NEAR(magnitude[row], std::sqrt(squares), 1e-6 * std::sqrt(squares));
  }
}

// Over codes the magnitudes begin as the lengths of the decoded rows.
TEST_F(Dora, AFreshAdapterChangesNothingOverCodes) {
  options.techniques.pins["quantize-weights"] = "nf4";
  for (const char* precision : {"32-true", "bf16-mixed"}) {
    options.techniques.precision = precision;
    options.techniques.lora.decomposed = false;
    const double before = TrainingRun(golden, options).step().loss;
    options.techniques.lora.decomposed = true;
    EXPECT_NEAR(TrainingRun(golden, options).step().loss, before, (precision[0] == '3' ? 1e-6 : 1e-3) * before);
  }
}

TEST_F(Dora, TrainsOverCodesAndNarrowWeights) {
  options.schedule.learning_rate = 1e-2;
  for (const auto& [precision, codes] : {std::pair<const char*, const char*>{"32-true", "nf4-dq"},
                                         {"bf16-mixed", "nf4"},
                                         {"bf16-true", "off"},
                                         {"bf16-true", "int8"}}) {
    options.techniques.precision = precision;
    options.techniques.pins["quantize-weights"] = codes;
    TrainingRun run(golden, options);
    const double first = run.step().loss;
    for (int step = 0; step < 4; ++step) run.step();
    EXPECT_LT(run.step().loss, first) << precision << " " << codes;
  }
}

TEST_F(Dora, IsRefusedWhereItIsNotBuilt) {
  options.techniques.lora.dropout = 0.1;
  expect_refused("dropout 0.1");
  options.techniques.lora.dropout = 0;
  for (const char* name : {"gpt2", "mixtral"}) {
    golden = GoldenCase::open(name);
    expect_refused(name == std::string("gpt2") ? "[in, out]" : "use_dora");
  }
}

TEST_F(Dora, FilesWithoutMagnitudesAreRefused) {
  const ScratchFolder scratch("dora");
  options.techniques.lora.decomposed = false;
  TrainingRun(golden, options).save_adapter(scratch.path);
  Json config = read_json(scratch.path / "adapter_config.json");
  EXPECT_EQ(config.at("use_dora"), false);
  config["use_dora"] = true;
  std::ofstream(scratch.path / "adapter_config.json") << config.dump();
  try {
    lora_options(open_adapter(scratch.path), golden.model.spec);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("lora_magnitude_vector"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("use_dora"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace headroom::test
