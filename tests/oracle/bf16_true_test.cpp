// Training with bf16 weights: losses against PyTorch's bf16 model, and the benefit of stochastic rounding.
#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "base/threads.h"
#include "training_run.h"

namespace headroom::test {
namespace {

// Relative; torch's own runs differ by up to 0.3 % between seeds.
constexpr double kLossTolerance = 0.004;

TrainOptions narrow_options(const GoldenCase& golden) {
  TrainOptions options = plain_options(golden);
  options.techniques.precision = "bf16-true";
  return options;
}

class Bf16TrueAsTorch : public testing::TestWithParam<const char*> {};

TEST_P(Bf16TrueAsTorch, LossesOfFiveSteps) {
  const GoldenCase golden = GoldenCase::open(GetParam());
  const Json expected = read_json(golden.folder / "bf16_true.json");
  TrainOptions options = narrow_options(golden);
  options.schedule.learning_rate = expected.at("learning_rate").get<double>();
  TrainingRun run(golden, options);
  for (const Json& loss : expected.at("losses"))
    EXPECT_NEAR(run.step().loss, loss.get<double>(), kLossTolerance * loss.get<double>());
}

TEST_P(Bf16TrueAsTorch, WeightsTakeHalfTheBytes) {
  const GoldenCase golden = GoldenCase::open(GetParam());
  const Plan wide = TrainingRun(golden, plain_options(golden)).plan(),
             narrow = TrainingRun(golden, narrow_options(golden)).plan();
  EXPECT_EQ(2 * narrow.breakdown.weights, wide.breakdown.weights);
  EXPECT_EQ(narrow.peak_bytes, narrow.arena_bytes + narrow.process.total());
}

TEST_P(Bf16TrueAsTorch, RecomputationChangesNoBit) {
  const GoldenCase golden = GoldenCase::open(GetParam());
  TrainOptions options = narrow_options(golden);
  options.schedule.learning_rate = 1e-3;
  TrainingRun plain(golden, options);
  options.techniques.pins["recompute"] = "block-input";
  TrainingRun recomputed(golden, options);
  for (int step = 0; step < 3; ++step) EXPECT_EQ(plain.step().loss, recomputed.step().loss);
}

INSTANTIATE_TEST_SUITE_P(Cases, Bf16TrueAsTorch, testing::Values("llama_gqa_tied", "gpt2", "qwen2_bias"),
                         [](const auto& param) { return std::string(param.param); });

// Small steps: rounding to nearest loses most of them, stochastic rounding none on average.
TEST(Bf16True, StochasticRoundingLearnsWhereRoundingToNearestStalls) {
  const GoldenCase golden = GoldenCase::open("llama_gqa_tied");
  TrainOptions options = plain_options(golden);
  options.schedule.learning_rate = 2e-5;
  TrainingRun wide(golden, options), nearest(golden, options);
  TrainingRun stochastic(golden, [&] {
    TrainOptions narrow = options;
    narrow.techniques.precision = "bf16-true";
    return narrow;
  }());
  nearest.round_weights();
  const double start = wide.evaluate();
  for (int step = 0; step < 200; ++step) {
    wide.step();
    nearest.step();
    nearest.round_weights();
    stochastic.step();
  }
  const double learned = start - wide.evaluate();
  EXPECT_GT(learned, 0.05);
  EXPECT_LT(std::abs(stochastic.evaluate() - wide.evaluate()), 0.1 * learned);
  EXPECT_LT(start - nearest.evaluate(), 0.5 * learned);
}

// With adapters the base is bf16, adapters and their states are fp32, and the base never changes.
TEST(Bf16True, AdaptersStayInFp32BesideABf16Base) {
  const GoldenCase golden = GoldenCase::open("llama_gqa_tied");
  TrainOptions options = narrow_options(golden);
  options.techniques.lora.rank = 4;
  options.schedule.learning_rate = 1e-2;
  TrainingRun run(golden, options);
  for (const PersistentTensor& tensor : run.plan().tensors) {
    if (tensor.role == Role::parameter) {
      EXPECT_EQ(tensor.place.type.dtype, is_lora_name(tensor.name) ? DType::f32 : DType::bf16) << tensor.name;
    } else if (tensor.role == Role::optimizer) {
      EXPECT_TRUE(tensor.name.find(".lora_") != std::string::npos) << tensor.name;
    }
  }
  const std::vector<float> base = run.parameter("model.layers.0.mlp.up_proj.weight");
  const double before = run.step().loss;
  for (int step = 0; step < 4; ++step) run.step();
  EXPECT_LT(run.step().loss, before);
  EXPECT_EQ(run.parameter("model.layers.0.mlp.up_proj.weight"), base);
}

}  // namespace
}  // namespace headroom::test
