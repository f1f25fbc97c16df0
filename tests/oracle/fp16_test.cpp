// fp16 with a loss scale: steps against torch.autocast(float16) and GradScaler, overflow, and fp16 weights.
#include <gtest/gtest.h>

#include "golden_curve.h"

namespace headroom::test {
namespace {

struct Fp16Case {
  explicit Fp16Case(const char* name) : golden(GoldenCase::open(name)), json(read_json(golden.folder / "fp16.json")) {}
  GoldenCase golden;
  Json json;

  TrainOptions options(const char* precision) const {
    TrainOptions options = with_optimizer_of(json, plain_options(golden));
    options.techniques.precision = precision;
    options.techniques.fp16.initial_scale_power = json.at("initial_scale_power").get<int64_t>();
    options.techniques.fp16.loss_scale_window = json.at("window").get<int64_t>();
    return options;
  }
};

class Fp16AsTorch : public testing::TestWithParam<const char*> {};

TEST_P(Fp16AsTorch, MixedStepsAndScalesAreNearAutocasts) {
  const Fp16Case torch(GetParam());
  TrainingRun run(torch.golden, torch.options("16-mixed"));
  double worst = 0;
  for (const Json& row : torch.json.at("steps")) {
    const StepOutcome outcome = run.step();
    worst = std::max(worst, expect_step(row, outcome.loss, outcome.gradient_norm, {.loss = 4e-3, .grad_norm = 1e-2}));
    EXPECT_EQ(outcome.loss_scale, row.at("scale").get<double>()) << row.at("step");
    EXPECT_FALSE(outcome.skipped);
  }
  RecordProperty("worst_loss", fmt::format("{:.1e}", worst));
}

double distance(const Gradients& a, const Gradients& b) {
  double apart = 0, norm = 0;
  for (const auto& [name, gradient] : b) {
    apart += std::pow(l2_distance(a.at(name), gradient), 2);
    norm += std::pow(l2_norm(gradient), 2);
  }
  return std::sqrt(apart / norm);
}

// With fp32 the distance would be smaller, with bf16 eight times as large.
TEST_P(Fp16AsTorch, GradientsAreAsFarFromFp32sAsAutocasts) {
  const Fp16Case torch(GetParam());
  TrainOptions options = torch.options("16-mixed");
  options.schedule.learning_rate = 0;
  TrainingRun narrow(torch.golden, options);
  options.techniques.precision = "32-true";
  options.techniques.fp16 = {};
  TrainingRun wide(torch.golden, options);
  const double error = distance(narrow.step().gradients, wide.step().gradients);
  const double theirs = torch.json.at("gradient_error").get<double>();
  EXPECT_GT(error, theirs / 2.5);
  EXPECT_LT(error, theirs * 1.5);
}

TEST_P(Fp16AsTorch, WeightsInFp16LearnAsThoseInFp32) {
  const Fp16Case torch(GetParam());
  TrainingRun run(torch.golden, torch.options("16-true"));
  for (const Json& row : torch.json.at("steps"))
    EXPECT_NEAR(run.step().loss, row.at("loss").get<double>(), 2e-2 * row.at("loss").get<double>()) << row.at("step");
}

TEST_P(Fp16AsTorch, BytesOfTheWeights) {
  const Fp16Case torch(GetParam());
  const Plan wide = TrainingRun(torch.golden, plain_options(torch.golden)).plan(),
             narrow = TrainingRun(torch.golden, torch.options("16-true")).plan(),
             mixed = TrainingRun(torch.golden, torch.options("16-mixed")).plan();
  EXPECT_EQ(2 * narrow.breakdown.weights, wide.breakdown.weights);
  EXPECT_EQ(narrow.peak_bytes, narrow.arena_bytes + narrow.process.total());
  int64_t masters = 0, copies = 0;
  for (const PersistentTensor& tensor : mixed.tensors)
    if (tensor.role == Role::parameter)
      (tensor.name.ends_with("#f16") ? copies : masters) += storage_bytes(tensor.place.type);
  EXPECT_EQ(masters, wide.breakdown.weights);
  EXPECT_EQ(copies > 0, mixed.choices.flag("weight_copies"));
}

TEST_P(Fp16AsTorch, RecomputationChangesNoBit) {
  const Fp16Case torch(GetParam());
  for (const char* precision : {"16-mixed", "16-true"}) {
    TrainOptions options = torch.options(precision);
    TrainingRun plain(torch.golden, options);
    options.techniques.pins["recompute"] = "block-input";
    TrainingRun recomputed(torch.golden, options);
    for (int step = 0; step < 3; ++step) {
      const StepOutcome expected = plain.step(), outcome = recomputed.step();
      EXPECT_EQ(outcome.loss, expected.loss) << precision;
      EXPECT_EQ(outcome.gradients, expected.gradients) << precision;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Fp16AsTorch, testing::Values("llama_gqa_tied", "gpt2", "qwen2_bias"),
                         [](const auto& param) { return std::string(param.param); });

// A scale with which gradients overflow: steps are skipped, weights and states do not change, and the scale is halved
// until gradients are finite. The following steps are those of a run that began there.
TEST(Fp16, OverflowLeavesTheStepOutAndHalvesTheScale) {
  const Fp16Case torch("llama_gqa_tied");
  for (const char* precision : {"16-mixed", "16-true"})
    for (const double clips : {0.0, 1.0}) {
      TrainOptions options = torch.options(precision);
      options.techniques.max_grad_norm = clips;
      options.techniques.fp16.initial_scale_power = 30;
      options.techniques.fp16.loss_scale_window = 1000;
      TrainingRun run(torch.golden, options);
      const std::string name = "model.layers.0.mlp.up_proj.weight";
      const std::vector<float> weights = run.parameter(name);
      const std::vector<std::byte> states = run.states();
      double scale = 0x1p30;
      StepOutcome outcome = run.step();
      int skipped = 0;
      for (; outcome.skipped && skipped < 30; outcome = run.step()) {
        EXPECT_EQ(outcome.loss_scale, scale);
        EXPECT_EQ(run.parameter(name), weights);
        EXPECT_EQ(run.states(), states);
        scale /= 2, ++skipped;
      }
      EXPECT_GT(skipped, 2);
      EXPECT_FALSE(outcome.skipped);
      EXPECT_NE(run.parameter(name), weights);
      options.techniques.fp16.initial_scale_power = 30 - skipped;
      TrainingRun later(torch.golden, options);
      const StepOutcome first = later.step();
      EXPECT_EQ(first.loss, outcome.loss);
      EXPECT_EQ(first.gradients, outcome.gradients);
      EXPECT_EQ(later.states(), run.states());  // the optimizer counts only the steps taken
    }
}

// A fixed scale with and without clipping: the update reads the same values except for the clipping.
TEST(Fp16, TheScaleLeavesNoTrace) {
  const Fp16Case torch("gpt2");
  TrainOptions options = torch.options("16-mixed");
  options.techniques.max_grad_norm = 0;
  std::vector<double> losses[2];
  for (const int64_t power : {6, 9}) {
    options.techniques.fp16 = {};
    options.techniques.fp16.loss_scale = std::exp2(static_cast<double>(power));
    TrainingRun run(torch.golden, options);
    for (int step = 0; step < 4; ++step) losses[power == 9].push_back(run.step().loss);
  }
  for (size_t step = 0; step < 4; ++step) EXPECT_NEAR(losses[0][step], losses[1][step], 1e-3 * losses[0][step]);
}

// With adapters the base is fp16, adapters and their states are fp32.
TEST(Fp16, AdaptersStayInFp32BesideAnFp16Base) {
  const Fp16Case torch("llama_gqa_tied");
  TrainOptions options = torch.options("16-true");
  options.techniques.lora.rank = 4;
  options.schedule.learning_rate = 1e-2;
  TrainingRun run(torch.golden, options);
  for (const PersistentTensor& tensor : run.plan().tensors)
    if (tensor.role == Role::parameter) {
      EXPECT_EQ(tensor.place.type.dtype, is_lora_name(tensor.name) ? DType::f32 : DType::f16) << tensor.name;
    }
  const double before = run.step().loss;
  for (int step = 0; step < 4; ++step) run.step();
  EXPECT_LT(run.step().loss, before);
}

}  // namespace
}  // namespace headroom::test
