// Frozen weights: the others train bitwise as if nothing were frozen, and what lies below them costs nothing.
#include <gtest/gtest.h>

#include <algorithm>

#include "passes/freeze.h"
#include "training_run.h"

namespace headroom::test {
namespace {

class Frozen : public testing::TestWithParam<const char*> {};

TEST_P(Frozen, TheOthersHaveTheSameGradients) {
  const GoldenCase golden = GoldenCase::open(GetParam());
  TrainOptions options = plain_options(golden);
  TrainingRun whole(golden, options);
  options.techniques.freeze = {golden.model.spec.family == "gpt2" ? "h.0" : "layers.0"};
  TrainingRun part(golden, options);
  const StepOutcome all = whole.step(), some = part.step();
  EXPECT_EQ(all.loss, some.loss);
  EXPECT_LT(some.gradients.size(), all.gradients.size());
  for (const auto& [name, gradient] : some.gradients) {
    EXPECT_EQ(name.find("layers.0."), std::string::npos) << name;
    EXPECT_EQ(gradient, all.gradients.at(name)) << name;
  }
}

TEST_P(Frozen, BelowTheFirstTrainedWeightNothingIsKept) {
  const GoldenCase golden = GoldenCase::open(GetParam());
  TrainOptions options = plain_options(golden);
  const Plan all = TrainingRun(golden, options).plan();
  // Everything except the last norm: no activation of any block is needed later.
  options.techniques.freeze = {golden.model.spec.family == "gpt2" ? "h" : "layers",
                               "wte",
                               "wpe",
                               "embed_tokens",
                               "embed_in",
                               "embed_out",
                               "lm_head"};
  std::erase_if(options.techniques.freeze, [&](const std::string& pattern) {
    const std::vector<WeightInfo> weights = model_weights(golden.model.spec);
    return std::none_of(weights.begin(), weights.end(),
                        [&](const WeightInfo& weight) { return pattern_means(pattern, weight.name); });
  });
  const Plan part = TrainingRun(golden, options).plan();
  EXPECT_LT(part.arena_bytes, all.arena_bytes);
}

INSTANTIATE_TEST_SUITE_P(Families, Frozen, testing::Values("llama_gqa_tied", "gpt2", "qwen2_bias", "gpt_neox"));

}  // namespace
}  // namespace headroom::test
