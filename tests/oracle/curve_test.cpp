// Steps of AdamW against torch.optim.AdamW, in fp32, and in bf16-mixed against torch.autocast. Tolerances: README.md.
#include <gtest/gtest.h>

#include "golden_curve.h"
#include "moments.h"

namespace headroom::test {
namespace {

struct Curve {
  explicit Curve(const char* name) : golden(GoldenCase::open(name)) {}
  GoldenCase golden;
  Json json = read_json(golden.folder / "curves.json");

  TrainOptions options(const char* precision) const {
    TrainOptions options = with_optimizer_of(json, plain_options(golden));
    options.techniques.precision = precision;
    return options;
  }
};

class GoldenCurve : public testing::TestWithParam<const char*> {};

TEST_P(GoldenCurve, InFp32IsTorchs) {
  const Curve curve(GetParam());
  TrainingRun run(curve.golden, curve.options("32-true"));
  const double worst = expect_curve(curve.json.at("fp32"), run);
  RecordProperty("worst_loss", fmt::format("{:.1e}", worst));
}

// The embeddings and the first layer are frozen; clipping uses the norm of the others.
TEST_P(GoldenCurve, WithFrozenLayersIsTorchs) {
  const Curve curve(GetParam());
  TrainOptions options = curve.options("32-true");
  options.techniques.freeze = curve.json.at("freeze").get<std::vector<std::string>>();
  TrainingRun run(curve.golden, options);
  const double worst = expect_curve(curve.json.at("frozen"), run);
  RecordProperty("worst_loss", fmt::format("{:.1e}", worst));
}

// The tolerance of a loss against torch's autocast. With experts, rounding changes some choices, so the distance
// between torch's own two curves is added.
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
  options.techniques.pins["recompute"] = "on";
  TrainingRun recomputed(curve.golden, options);
  for (int step = 0; step < 3; ++step) {
    const StepOutcome expected = plain.step(), outcome = recomputed.step();
    EXPECT_EQ(outcome.loss, expected.loss) << "step " << step;
    EXPECT_EQ(outcome.gradients, expected.gradients) << "step " << step;
  }
}

constexpr const char* kDense[] = {"llama_gqa_tied",
                                  "qwen3",
                                  "olmo2",
                                  "gemma2",
                                  "gemma3",
                                  "gpt_neox",
                                  "gpt_neox_sequential",
                                  "phi3_longrope",
                                  "starcoder2",
                                  "bert_masked",
                                  "bert_classes",
                                  "roberta_masked",
                                  "roberta_classes",
                                  "gpt_neox_classes",
                                  "llama_padding",
                                  "gemma2_padding",
                                  "bert_padding",
                                  "roberta_padding"};
constexpr const char* kExperts[] = {"mixtral", "qwen3_moe"};

std::string case_name(const testing::TestParamInfo<const char*>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Cases, GoldenCurve, testing::ValuesIn(kDense), case_name);
INSTANTIATE_TEST_SUITE_P(Experts, GoldenCurve, testing::ValuesIn(kExperts), case_name);

// --matmul-precision against PyTorch with operands split in the same way.
class RoundedProducts : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  const char* precision() const { return std::get<1>(GetParam()); }
  TrainOptions rounding() const {
    TrainOptions rounded = options;
    rounded.techniques.matmul_precision = precision();
    return rounded;
  }
  const Curve curve{std::get<0>(GetParam())};
  const TrainOptions options = curve.options("32-true");
};

// One number that is rounded differently changes all that is computed from it, and soon everything is rounded
// differently: a curve is a random sample. Twelve runs whose weights differ in their last bits show how far samples
// spread, and torch's must be among them: a thirteenth sample exceeds this bound once in 100,000 times (Student's t
// with 11 degrees of freedom).
TEST_P(RoundedProducts, LossesAreTorchs) {
  constexpr int kRuns = 12;
  const double bound = 7.5 * std::sqrt(1 + 1.0 / kRuns);
  const Json& rows = curve.json.at(precision());
  std::vector<Moments> losses(rows.size()), norms(rows.size());
  for (int i = 0; i < kRuns; ++i) {
    TrainingRun run(curve.golden, rounding());
    for (const WeightInfo& weight : model_weights(curve.golden.model.spec))
      run.move(weight.name, run.parameter(weight.name), (i - kRuns / 2) * 0x1p-23);
    for (size_t step = 0; step < rows.size(); ++step) {
      const StepOutcome outcome = run.step();
      losses[step].values.push_back(outcome.loss);
      norms[step].values.push_back(outcome.gradient_norm);
    }
  }
  double worst = 0;
  for (size_t step = 0; step < rows.size(); ++step) {
    const double loss = rows[step].at("loss").get<double>(), norm = rows[step].at("grad_norm").get<double>();
    EXPECT_NEAR(losses[step].mean(), loss, CurveTolerance().loss * loss + bound * losses[step].deviation()) << step;
    EXPECT_NEAR(norms[step].mean(), norm, CurveTolerance().grad_norm * norm + bound * norms[step].deviation()) << step;
    worst = std::max(worst, std::abs(losses[step].mean() / loss - 1));
  }
  RecordProperty("worst_loss", fmt::format("{:.1e}", worst));
}

// The error itself hardly depends on how single numbers are rounded. An operand with one bit too few or too many
// changes it by a factor of two.
TEST_P(RoundedProducts, GradientsAreAsFarFromFp32AsTorchs) {
  const StepOutcome exact = TrainingRun(curve.golden, options).step();
  const StepOutcome found = TrainingRun(curve.golden, rounding()).step();
  double distance = 0, norm = 0;
  for (const auto& [name, gradient] : exact.gradients) {
    distance += std::pow(l2_distance(gradient, found.gradients.at(name)), 2);
    norm += std::pow(l2_norm(gradient), 2);
  }
  const double ratio = std::sqrt(distance / norm) / curve.json.at("gradient_error").at(precision()).get<double>();
  EXPECT_GT(ratio, 1 / 1.4);
  EXPECT_LT(ratio, 1.4);
}

INSTANTIATE_TEST_SUITE_P(Cases, RoundedProducts,
                         testing::Combine(testing::ValuesIn(kDense), testing::Values("high", "medium")),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param));
                         });

}  // namespace
}  // namespace headroom::test
