// compress-activations: how far gradients move, that the loss does not, and combinations with other techniques.
#include <gtest/gtest.h>

#include "training_run.h"

namespace headroom::test {
namespace {

class CompressedActivations : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    golden_ = GoldenCase::open(GetParam());
    options_ = plain_options(golden_);
    compressed_ = options_;
    compressed_.techniques.pins["compress-activations"] = "int8";
  }

  // The largest distance of a gradient, relative to its norm; only for gradients that matter.
  static double largest_error(const StepOutcome& plain, const StepOutcome& rounded) {
    double worst = 0;
    for (const auto& [name, values] : plain.gradients)
      if (const double norm = l2_norm(values); norm > 1e-3 * plain.gradient_norm) {
        const double error = l2_distance(rounded.gradients.at(name), values) / norm;
        testing::Test::RecordProperty(name, fmt::format("{:.2e}", error));
        worst = std::max(worst, error);
      }
    return worst;
  }

  GoldenCase golden_;
  TrainOptions options_, compressed_;
};

TEST_P(CompressedActivations, MoveGradientsByLittleAndTheLossNotAtAll) {
  const StepOutcome plain = TrainingRun(golden_, options_).step(), rounded = TrainingRun(golden_, compressed_).step();
  EXPECT_EQ(rounded.loss, plain.loss);
  const double error = largest_error(plain, rounded);
  EXPECT_GT(error, 1e-5);  // something was rounded
  EXPECT_LT(error, 0.05);
}

TEST_P(CompressedActivations, RepeatBitwise) {
  TrainingRun first(golden_, compressed_), second(golden_, compressed_);
  for (int step = 0; step < 2; ++step) EXPECT_EQ(first.step().gradients, second.step().gradients);
}

TEST_P(CompressedActivations, ComposeWithRecomputation) {
  const StepOutcome plain = TrainingRun(golden_, options_).step();
  for (const char* level : {"drop-cheap", "keep-attention", "block-input"}) {
    SCOPED_TRACE(level);
    compressed_.techniques.pins["recompute"] = level;
    const StepOutcome rounded = TrainingRun(golden_, compressed_).step();
    EXPECT_EQ(rounded.loss, plain.loss);
    EXPECT_LT(largest_error(plain, rounded), 0.05);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CompressedActivations, testing::Values("llama_gqa_tied", "gpt2", "bert_masked"));

}  // namespace
}  // namespace headroom::test
