// Dropout: the same elements whatever is recomputed or split, others in every step, none in evaluation; losses and
// gradients are distributed as PyTorch's (make_dropout.py).
#include <gtest/gtest.h>

#include "base/error.h"
#include "moments.h"
#include "training_run.h"

namespace headroom::test {
namespace {

ModelSpec spec_with(const GoldenCase& golden, const Json& changes) {
  Json config = golden.model.config.raw;
  config.update(changes);
  return read_model_spec(HfConfig::parse(config.dump(), "config.json"));
}

// A model and keys of its config.json.
struct Setting {
  const char* name;
  Json changes;
};

class Dropout : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    golden_ = GoldenCase::open(GetParam().name);
    golden_.model.spec = spec_with(golden_, GetParam().changes);
    options_ = plain_options(golden_);
  }
  GoldenCase golden_;
  TrainOptions options_;
};

TEST_P(Dropout, IsThatOfTraining) {
  TrainingRun run(golden_, options_);
  const StepOutcome first = run.step();
  EXPECT_GT(std::abs(first.loss / golden_.loss - 1), 1e-3);
  EXPECT_NE(run.step().loss, first.loss) << "a step drops what the step before dropped";
  EXPECT_NEAR(run.evaluate(), golden_.loss, 2e-5 * golden_.loss);
}

TEST_P(Dropout, RecomputationAndMicroBatchesDropTheSame) {
  const StepOutcome plain = TrainingRun(golden_, options_).step();
  TrainOptions redone = options_;
  redone.techniques.pins["recompute"] = "on";
  TrainingRun again(golden_, redone);
  const StepOutcome outcome = again.step();
  EXPECT_EQ(outcome.loss, plain.loss);
  EXPECT_EQ(outcome.gradients, plain.gradients);
  TrainOptions cut = options_;
  cut.data.micro_batch_size = 1;
  TrainingRun pieces(golden_, cut);
  const StepOutcome sum = pieces.step();
  EXPECT_NEAR(sum.loss, plain.loss, 1e-5 * plain.loss);
  EXPECT_NEAR(sum.gradient_norm, plain.gradient_norm, 1e-4 * plain.gradient_norm);
}

TEST_P(Dropout, MixedPrecisionDropsTheSame) {
  const double plain = TrainingRun(golden_, options_).step().loss;
  options_.techniques.precision = "bf16-mixed";
  TrainingRun run(golden_, options_);
  EXPECT_NEAR(run.step().loss, plain, 0.03 * plain);
  EXPECT_NEAR(run.evaluate(), golden_.loss, 0.03 * golden_.loss);
}

TEST_P(Dropout, OffIsTheModelWithoutIt) {
  options_.model.dropout = "off";
  TrainingRun run(golden_, options_);
  const StepOutcome first = run.step();
  EXPECT_NEAR(first.loss, golden_.loss, 2e-5 * golden_.loss);
  EXPECT_EQ(run.step().loss, first.loss);
}

// Scratch and arena of a plan do not depend on attention's dropout.
TEST_P(Dropout, OfAttentionTakesNoMemory) {
  const auto bytes = [&](double attention) {
    GoldenCase golden = golden_;
    golden.model.spec.dropout.attention = attention;
    return TrainingRun(golden, options_).plan().arena_bytes;
  };
  EXPECT_EQ(bytes(0.2), bytes(0));
}

Json encoder_rates() {
  return {{"attention_probs_dropout_prob", 0.2}, {"hidden_dropout_prob", 0.2}, {"classifier_dropout", 0.3}};
}

INSTANTIATE_TEST_SUITE_P(
    Families, Dropout,
    testing::Values(Setting{"bert_masked", encoder_rates()}, Setting{"bert_classes", encoder_rates()},
                    Setting{"roberta_masked", encoder_rates()}, Setting{"roberta_classes", encoder_rates()},
                    Setting{"gpt2", {{"attn_pdrop", 0.1}, {"resid_pdrop", 0.1}, {"embd_pdrop", 0.1}}},
                    Setting{"gpt_neox", {{"attention_dropout", 0.2}, {"hidden_dropout", 0.1}}},
                    Setting{"starcoder2", {{"attention_dropout", 0.2}, {"residual_dropout", 0.1}}},
                    Setting{"phi3_longrope", {{"attention_dropout", 0.2}, {"resid_pdrop", 0.1}}},
                    Setting{"llama_gqa_tied", {{"attention_dropout", 0.2}}},
                    Setting{"gemma2", {{"attention_dropout", 0.2}}}),
    [](const auto& param) { return std::string(param.param.name); });

// Means over many steps with a learning rate of zero, against PyTorch's over as many samples.
constexpr size_t kSettings = 23;
class DropoutMeans : public testing::TestWithParam<size_t> {};

void expect_alike(const Moments& found, const Json& expected, double draws) {
  const double mean = expected.at(0).get<double>(), deviation = expected.at(1).get<double>();
  const auto count = static_cast<double>(found.values.size());
  EXPECT_NEAR(found.mean(), mean, 4 * deviation * std::sqrt(1 / count + 1 / draws));
  EXPECT_NEAR(found.deviation() / deviation, 1, 0.4);
}

TEST_P(DropoutMeans, AreTorchs) {
  const Json file = read_json(std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/oracle/dropout.json");
  ASSERT_EQ(file.at("settings").size(), kSettings);
  const Json& setting = file.at("settings").at(GetParam());
  SCOPED_TRACE(setting.dump());
  GoldenCase golden = GoldenCase::open(setting.at("case").get<std::string>());
  golden.model.spec = spec_with(golden, setting.at("config"));
  TrainingRun run(golden, plain_options(golden));
  Moments losses, norms;
  for (int step = 0; step < 200; ++step) {
    const StepOutcome outcome = run.step();
    losses.values.push_back(outcome.loss);
    norms.values.push_back(outcome.gradient_norm);
  }
  const auto draws = file.at("draws").get<double>();
  expect_alike(losses, setting.at("loss"), draws);
  expect_alike(norms, setting.at("gradient_norm"), draws);
}

INSTANTIATE_TEST_SUITE_P(Settings, DropoutMeans, testing::Range(size_t{0}, kSettings));

struct Rates {
  double embedding, attention, residual, head;
  bool operator==(const Rates&) const = default;
};
Rates rates_of(const char* name, const Json& changes) {
  const DropoutRates rates = spec_with(GoldenCase::open(name), changes).dropout;
  return {rates.embedding, rates.attention, rates.residual, rates.head};
}

// Null means that the key is absent.
TEST(DropoutConfig, IsReadAsTransformersDoes) {
  const auto bert = [](const Json& changes) { return rates_of("bert_classes", changes); };
  EXPECT_EQ(bert({{"hidden_dropout_prob", 0.25}, {"classifier_dropout", nullptr}}), (Rates{0.25, 0, 0.25, 0.25}));
  EXPECT_EQ(bert({{"hidden_dropout_prob", 0.25}, {"classifier_dropout", 0.0}}), (Rates{0.25, 0, 0.25, 0}));
  EXPECT_EQ(bert({{"hidden_dropout_prob", nullptr}, {"attention_probs_dropout_prob", nullptr}}),
            (Rates{0.1, 0.1, 0.1, 0.1}));
  EXPECT_EQ(rates_of("gpt2", {{"attn_pdrop", nullptr}, {"resid_pdrop", nullptr}, {"embd_pdrop", nullptr}}),
            (Rates{0.1, 0.1, 0.1, 0}));
  EXPECT_EQ(rates_of("gpt2", {{"attn_pdrop", 0.2}, {"resid_pdrop", 0.3}, {"embd_pdrop", 0.4}}),
            (Rates{0.4, 0.2, 0.3, 0}));
  EXPECT_EQ(rates_of("gpt_neox", {{"attention_dropout", 0.2}, {"hidden_dropout", 0.3}}), (Rates{0.3, 0.2, 0.3, 0}));
  EXPECT_EQ(rates_of("starcoder2", {{"attention_dropout", 0.2}, {"residual_dropout", 0.3}, {"embedding_dropout", 0.4}}),
            (Rates{0.4, 0.2, 0.3, 0}));
  EXPECT_EQ(rates_of("phi3_longrope", {{"attention_dropout", 0.2}, {"resid_pdrop", 0.3}, {"embd_pdrop", 0.4}}),
            (Rates{0, 0.2, 0.3, 0}));
  for (const char* name : {"llama_gqa_tied", "mistral_window", "qwen2_bias", "qwen3", "qwen3_moe", "mixtral", "olmo2",
                           "gemma2", "gemma3"}) {
    EXPECT_EQ(rates_of(name, {{"attention_dropout", 0.2}}), (Rates{0, 0.2, 0, 0})) << name;
    EXPECT_EQ(rates_of(name, {{"attention_dropout", nullptr}}), (Rates{0, 0, 0, 0})) << name;
  }
  EXPECT_THROW(rates_of("gpt2", {{"attn_pdrop", 1.5}}), Error);
}

}  // namespace
}  // namespace headroom::test
