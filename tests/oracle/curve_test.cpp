// Steps of AdamW against torch.optim.AdamW, in fp32 and in bf16-mixed against torch.autocast. Tolerances:
// README.md.
#include <gtest/gtest.h>

#include "training_run.h"

namespace headroom::test {
namespace {

struct Curve {
  explicit Curve(const char* name) : golden(GoldenCase::open(name)) {}
  GoldenCase golden;
  Json json = read_json(golden.folder / "curves.json");

  TrainOptions options(const char* precision) const {
    TrainOptions options = plain_options(golden);
    options.learning_rate = json.at("learning_rate").get<double>();
    options.weight_decay = json.at("weight_decay").get<double>();
    options.adam_beta1 = json.at("adam_beta1").get<double>();
    options.adam_beta2 = json.at("adam_beta2").get<double>();
    options.adam_epsilon = json.at("adam_epsilon").get<double>();
    options.max_grad_norm = json.at("max_grad_norm").get<double>();
    options.precision = precision;
    return options;
  }
};

class GoldenCurve : public testing::TestWithParam<const char*> {};

TEST_P(GoldenCurve, InFp32IsTorchs) {
  const Curve curve(GetParam());
  TrainingRun run(curve.golden, curve.options("32-true"));
  double worst = 0;
  for (const Json& row : curve.json.at("fp32")) {
    const StepOutcome outcome = run.step();
    const double loss = row.at("loss").get<double>(), norm = row.at("grad_norm").get<double>();
    EXPECT_NEAR(outcome.loss, loss, 1e-4 * loss) << "step " << row.at("step");
    worst = std::max(worst, std::abs(outcome.loss / loss - 1));
    EXPECT_NEAR(outcome.gradient_norm, norm, 1e-3 * norm) << "step " << row.at("step");
  }
  RecordProperty("worst_loss", fmt::format("{:.1e}", worst));
}

// How far a loss may be from torch's autocast. Where tokens choose experts, rounding changes some choices: there, as
// far as torch's own two curves are apart is added.
double bf16_tolerance(const Curve& curve) {
  double apart = 0;
  if (curve.golden.model.spec.experts.count > 0)
    for (size_t step = 0; step < curve.json.at("fp32").size(); ++step)
      apart = std::max(apart, std::abs(curve.json["fp32"][step].at("loss").get<double>() -
                                       curve.json["bf16_autocast"][step].at("loss").get<double>()));
  return 0.03 + apart;
}

TEST_P(GoldenCurve, InBf16MixedIsNearTorchsAutocast) {
  const Curve curve(GetParam());
  TrainingRun run(curve.golden, curve.options("bf16-mixed"));
  double worst = 0;
  for (const Json& row : curve.json.at("bf16_autocast")) {
    const StepOutcome outcome = run.step();
    const double loss = row.at("loss").get<double>();
    EXPECT_NEAR(outcome.loss, loss, bf16_tolerance(curve)) << "step " << row.at("step");
    worst = std::max(worst, std::abs(outcome.loss - loss));
  }
  RecordProperty("worst_loss", fmt::format("{:.4f}", worst));
}

TEST_P(GoldenCurve, InBf16MixedIsBitwiseTheSameUnderRecomputation) {
  const Curve curve(GetParam());
  TrainOptions options = curve.options("bf16-mixed");
  TrainingRun plain(curve.golden, options);
  options.techniques["recompute"] = "on";
  TrainingRun recomputed(curve.golden, options);
  for (int step = 0; step < 3; ++step) {
    const StepOutcome expected = plain.step(), outcome = recomputed.step();
    EXPECT_EQ(outcome.loss, expected.loss) << "step " << step;
    EXPECT_EQ(outcome.gradients, expected.gradients) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenCurve,
                         testing::Values("llama_gqa_tied", "qwen3", "olmo2", "gemma2", "gemma3", "gpt_neox",
                                         "gpt_neox_sequential", "phi3_longrope", "starcoder2", "bert_masked",
                                         "bert_classes", "roberta_masked", "roberta_classes", "gpt_neox_classes",
                                         "mixtral", "qwen3_moe"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace headroom::test
