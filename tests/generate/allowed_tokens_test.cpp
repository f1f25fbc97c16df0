#include "generate/allowed_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "byte_grammar.h"
#include "tiny_generation.h"

namespace headroom {
namespace {

std::vector<float> some_logits() {
  std::vector<float> logits(258);
  for (size_t id = 0; id < logits.size(); ++id) logits[id] = static_cast<float>(6 * counter_uniform(3, id));
  return logits;
}

TEST(AllowedTokens, WithoutAGrammarThePickIsTheSamplers) {
  const std::vector<float> logits = some_logits();
  for (const SamplingOptions& options : {SamplingOptions{0}, SamplingOptions{1}, SamplingOptions{1, 0.8, 20}}) {
    Sampler one(options, 258), other(options, 258);
    AllowedTokens allowed(nullptr, 258);
    for (int64_t position = 0; position < 50; ++position)
      EXPECT_EQ(allowed.pick(one, logits, position), other.pick(logits, position));
    EXPECT_FALSE(allowed.ended());
  }
}

// Sampling is as from a vocabulary that has only the allowed tokens.
TEST(AllowedTokens, OthersHaveNoProbability) {
  ByteGrammar of("[b-k]");
  const std::vector<float> logits = some_logits();
  std::vector<float> ten(logits.begin() + 'b', logits.begin() + 'l');
  AllowedTokens allowed(&of.matcher(), 258);
  for (const SamplingOptions& options : {SamplingOptions{0}, SamplingOptions{1}, SamplingOptions{0.7, 0.8},
                                         SamplingOptions{1, 1, 4}, SamplingOptions{2, 0.9, 9}}) {
    Sampler masked(options, 258), alone(options, 10);
    for (int64_t position = 0; position < 400; ++position)
      ASSERT_EQ(allowed.pick(masked, logits, position) - 'b', alone.pick(ten, position)) << position;
  }
}

TEST(AllowedTokens, NeverDrawsWhatIsNotAllowed) {
  ByteGrammar of("[xy]");
  std::vector<float> logits(258, 30.0f);
  logits['x'] = -INFINITY, logits['y'] = NAN;
  AllowedTokens allowed(&of.matcher(), 258);
  for (const SamplingOptions& options :
       {SamplingOptions{0}, SamplingOptions{1}, SamplingOptions{1, 0.5}, SamplingOptions{1, 1, 100}}) {
    Sampler sampler(options, 258);
    for (int64_t position = 0; position < 20; ++position)
      EXPECT_THAT(allowed.pick(sampler, logits, position), testing::AnyOf('x', 'y'));
  }
}

TEST(AllowedTokens, NoTokenIsAnError) {
  ByteGrammar of("ab", 98);  // tokens up to a
  AllowedTokens allowed(&of.matcher(), 98);
  Sampler sampler({0}, 98);
  const std::vector<float> logits(98);
  EXPECT_EQ(allowed.pick(sampler, logits, 0), 'a');
  allowed.accept('a');
  EXPECT_THROW(allowed.pick(sampler, logits, 1), Error);
}

TEST(AllowedTokens, GenerationFollowsTheGrammarAndEndsWithIt) {
  const TemporaryDirectory directory;
  write_tiny_model(directory);
  TinyGeneration generation(directory / "model", 64, 8);
  for (const uint64_t seed : {1, 2, 3}) {
    ByteGrammar of("(ab|c){3}!");
    GenerateOptions options{{1.0, 1.0, 0, seed}, 40, {257}, &of.matcher()};
    const std::vector<int32_t> ids = generation.run(tiny_prompt(10), options);
    EXPECT_TRUE(of.matcher().must_end());
    std::string text(ids.begin(), ids.end());
    EXPECT_EQ(text.back(), '!');
    std::erase(text, 'a');
    EXPECT_EQ(text.size(), 4u);
    EXPECT_EQ(text.find_first_not_of("bc!"), std::string::npos);
  }
}

}  // namespace
}  // namespace headroom
