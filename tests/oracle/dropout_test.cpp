// Dropout of encoders: the same elements whatever is redone or cut, others in every step, none in evaluation.
#include <gtest/gtest.h>

#include "training_run.h"

namespace headroom::test {
namespace {

ModelSpec spec_with(const GoldenCase& golden, const Json& changes) {
  Json config = golden.model.config.raw;
  config.update(changes);
  return read_model_spec(HfConfig::parse(config.dump(), "config.json"));
}

class EncoderDropout : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    golden_ = GoldenCase::open(GetParam());
    golden_.model.spec = spec_with(golden_, {{"hidden_dropout_prob", 0.2}, {"classifier_dropout", 0.3}});
    options_ = plain_options(golden_);
  }
  GoldenCase golden_;
  TrainOptions options_;
};

TEST_P(EncoderDropout, IsThatOfTraining) {
  TrainingRun run(golden_, options_);
  const StepOutcome first = run.step();
  EXPECT_GT(std::abs(first.loss / golden_.loss - 1), 1e-3);
  EXPECT_NE(run.step().loss, first.loss) << "a step drops what the step before dropped";
  EXPECT_NEAR(run.evaluate(), golden_.loss, 2e-5 * golden_.loss);
}

TEST_P(EncoderDropout, RecomputationAndMicroBatchesDropTheSame) {
  const StepOutcome plain = TrainingRun(golden_, options_).step();
  TrainOptions redone = options_;
  redone.techniques["recompute"] = "on";
  TrainingRun again(golden_, redone);
  const StepOutcome outcome = again.step();
  EXPECT_EQ(outcome.loss, plain.loss);
  EXPECT_EQ(outcome.gradients, plain.gradients);
  TrainOptions cut = options_;
  cut.micro_batch_size = 1;
  TrainingRun pieces(golden_, cut);
  const StepOutcome sum = pieces.step();
  EXPECT_NEAR(sum.loss, plain.loss, 1e-5 * plain.loss);
  EXPECT_NEAR(sum.gradient_norm, plain.gradient_norm, 1e-4 * plain.gradient_norm);
}

TEST_P(EncoderDropout, MixedPrecisionDropsTheSame) {
  const double plain = TrainingRun(golden_, options_).step().loss;
  options_.precision = "bf16-mixed";
  TrainingRun run(golden_, options_);
  EXPECT_NEAR(run.step().loss, plain, 0.03 * plain);
  EXPECT_NEAR(run.evaluate(), golden_.loss, 0.03 * golden_.loss);
}

INSTANTIATE_TEST_SUITE_P(Encoders, EncoderDropout,
                         testing::Values("bert_masked", "bert_classes", "roberta_masked", "roberta_classes"),
                         [](const auto& param) { return std::string(param.param); });

TEST(EncoderDropoutConfig, IsReadAsTransformersDoes) {
  const GoldenCase golden = GoldenCase::open("bert_classes");
  const auto rates = [&](const Json& changes) {
    const ModelSpec spec = spec_with(golden, changes);
    return std::pair(spec.dropout, spec.head_dropout);
  };
  EXPECT_EQ(rates({{"hidden_dropout_prob", 0.25}, {"classifier_dropout", nullptr}}), std::pair(0.25, 0.25));
  EXPECT_EQ(rates({{"hidden_dropout_prob", 0.25}, {"classifier_dropout", 0.0}}), std::pair(0.25, 0.0));
  EXPECT_EQ(rates({{"hidden_dropout_prob", nullptr}}), std::pair(0.1, 0.1));
}

}  // namespace
}  // namespace headroom::test
