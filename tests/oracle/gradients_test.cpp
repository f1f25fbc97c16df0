// Loss and every gradient against PyTorch's, under each technique. Tolerances: README.md.
#include <gtest/gtest.h>

#include "training_run.h"

namespace headroom::test {
namespace {

constexpr double kLossTolerance = 2e-6;          // relative
constexpr double kGradientTolerance = 2e-5;      // of the expected gradient's norm
constexpr double kGradientFloor = 1e-7;          // of the norm over all gradients
constexpr double kGradientNormTolerance = 2e-5;  // relative

class GoldenGradients : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { golden_ = GoldenCase::open(GetParam()); }

  // Runs one step and compares all its results with PyTorch's.
  StepOutcome expect_golden(const TrainOptions& options) {
    TrainingRun run(golden_, options);
    StepOutcome outcome = run.step();
    plan_ = run.plan().choices;
    EXPECT_EQ(outcome.targets, static_cast<double>(golden_.targets));
    EXPECT_NEAR(outcome.loss, golden_.loss, kLossTolerance * golden_.loss);
    EXPECT_NEAR(outcome.gradient_norm, golden_.gradient_norm, kGradientNormTolerance * golden_.gradient_norm);
    expect_gradients(outcome);
    EXPECT_NEAR(run.evaluate(), golden_.loss, kLossTolerance * golden_.loss);
    return outcome;
  }

  void expect_gradients(const StepOutcome& outcome) {
    const std::map<std::string, std::vector<float>> expected = golden_.gradients();
    EXPECT_EQ(outcome.gradients.size(), expected.size());
    double worst = 0;
    for (const auto& [name, values] : expected) {
      const auto at = outcome.gradients.find(name);
      ASSERT_NE(at, outcome.gradients.end()) << "no gradient of " << name;
      ASSERT_EQ(at->second.size(), values.size()) << name;
      const double distance = l2_distance(at->second, values), norm = l2_norm(values);
      EXPECT_LE(distance, kGradientTolerance * norm + kGradientFloor * golden_.gradient_norm) << name;
      if (norm > 1e-3 * golden_.gradient_norm) worst = std::max(worst, distance / norm);
    }
    RecordProperty("worst_gradient", fmt::format("{:.2e}", worst));
    RecordProperty("loss", fmt::format("{:.2e}", std::abs(outcome.loss / golden_.loss - 1)));
  }

  GoldenCase golden_;
  Choices plan_;
};

TEST_P(GoldenGradients, OfThePlainRunAreTorchs) {
  expect_golden(plain_options(golden_));
  EXPECT_EQ(plan_.micro_batch, golden_.rows());
  EXPECT_FALSE(plan_.flag("fused_optimizer"));
}

TEST_P(GoldenGradients, WithSmallMicroBatchesAndChunksAndRecomputationAreTorchs) {
  for (const auto& [micro_batch, chunk, recompute] : {std::tuple<int64_t, const char*, const char*>{1, "7", "on"},
                                                      {1, "64", "drop-attention"},
                                                      {2, "13", "drop-cheap"},
                                                      {3, "27", "on"}}) {
    SCOPED_TRACE(fmt::format("micro-batch {}, chunk {}, recompute {}", micro_batch, chunk, recompute));
    TrainOptions options = plain_options(golden_);
    options.data.micro_batch_size = micro_batch;
    options.techniques.pins["chunked-loss"] = chunk;
    options.techniques.pins["recompute"] = recompute;
    expect_golden(options);
    EXPECT_EQ(plan_.micro_batch, micro_batch);
    EXPECT_EQ(plan_.integer("loss_chunk_rows"), std::min<int64_t>(std::stoll(chunk), micro_batch * plan_.seq_length));
    EXPECT_EQ(plan_.accumulation, (golden_.rows() + micro_batch - 1) / micro_batch);
  }
}

TEST_P(GoldenGradients, InsideAFusedOptimizerAreTorchs) {
  TrainOptions options = plain_options(golden_);
  options.techniques.pins = {{"fused-optimizer", "on"}, {"recompute", "on"}};
  options.schedule.learning_rate = 1e-3;  // an update before the weight's last reader would show in later gradients
  TrainingRun run(golden_, options);
  expect_gradients(run.step());
  plan_ = run.plan().choices;
  EXPECT_TRUE(plan_.flag("fused_optimizer"));
}

TEST_P(GoldenGradients, AreBitwiseTheSameUnderRecomputationAndFusion) {
  TrainOptions options = plain_options(golden_);
  options.schedule.learning_rate = 1e-3;
  TrainingRun plain(golden_, options);
  const StepOutcome first = plain.step(), second = plain.step();
  EXPECT_LT(second.loss, first.loss);  // the weights changed
  for (const char* recompute : {"drop-cheap", "drop-attention", "keep-attention", "drop-cheap+mlp",
                                "drop-elementwise+projections", "block-input"})
    for (const char* fused : {"off", "on"}) {
      SCOPED_TRACE(fmt::format("recompute {}, fused optimizer {}", recompute, fused));
      options.techniques.pins["recompute"] = recompute;
      options.techniques.pins["fused-optimizer"] = fused;
      TrainingRun run(golden_, options);
      for (const StepOutcome* expected : {&first, &second}) {
        const StepOutcome outcome = run.step();
        EXPECT_EQ(outcome.loss, expected->loss);
        EXPECT_EQ(outcome.gradients, expected->gradients);
      }
    }
}

// Rows of two texts: token types reach the embedding.
TEST(GoldenPairs, LossAndGradientsAreTorchs) {
  GoldenCase golden = GoldenCase::open("bert_classes");
  const Json expected = read_json(golden.folder / "pairs.json");
  golden.types = expected.at("types").get<std::vector<std::vector<int32_t>>>();
  for (const int64_t micro_batch : {4, 1}) {
    TrainOptions options = plain_options(golden);
    options.data.micro_batch_size = micro_batch;
    TrainingRun run(golden, options);
    const StepOutcome outcome = run.step();
    const double loss = expected.at("loss").get<double>(), norm = expected.at("gradient_norm").get<double>();
    EXPECT_NE(loss, golden.loss);
    EXPECT_NEAR(outcome.loss, loss, kLossTolerance * loss);
    EXPECT_NEAR(outcome.gradient_norm, norm, kGradientNormTolerance * norm);
    EXPECT_NEAR(run.evaluate(), loss, kLossTolerance * loss);
    const std::vector<float>& types = outcome.gradients.at("bert.embeddings.token_type_embeddings.weight");
    for (size_t type = 0; type < 2; ++type) {
      const auto half = static_cast<std::ptrdiff_t>(types.size() / 2), first = static_cast<std::ptrdiff_t>(type) * half;
      const double wanted = expected.at("type_gradient_norms")[type].get<double>();
      EXPECT_NEAR(l2_norm({types.begin() + first, types.begin() + first + half}), wanted, 1e-4 * wanted);
    }
  }
}

class GradientsWithTwoThreads : public GoldenGradients {};

TEST_P(GradientsWithTwoThreads, AreTorchs) {
  TrainOptions options = plain_options(golden_);
  options.machine.threads = 2;
  expect_golden(options);
}

INSTANTIATE_TEST_SUITE_P(Cases, GradientsWithTwoThreads,
                         testing::Values("qwen2_bias", "gpt2", "gemma2", "bert_masked", "mixtral", "roberta_padding"));

std::string case_name(const testing::TestParamInfo<const char*>& param) { return param.param; }

INSTANTIATE_TEST_SUITE_P(Cases, GoldenGradients,
                         testing::Values("llama_gqa_tied", "llama_rope_llama3", "llama_rope_linear", "qwen2_bias",
                                         "mistral_window", "gpt2", "qwen3", "olmo2", "gemma2", "gemma3", "gpt_neox",
                                         "gpt_neox_sequential", "phi3_longrope", "starcoder2", "bert_masked",
                                         "bert_classes", "roberta_masked", "roberta_classes", "gpt_neox_classes",
                                         "mixtral", "qwen3_moe", "llama_padding", "gemma2_padding", "bert_padding",
                                         "roberta_padding"),
                         case_name);

}  // namespace
}  // namespace headroom::test
