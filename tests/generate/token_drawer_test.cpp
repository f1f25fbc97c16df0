#include "generate/token_drawer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "byte_grammar.h"
#include "generate/allowed_tokens.h"
#include "generate/log_probabilities.h"

namespace headroom {
namespace {

std::vector<float> drawer_logits(size_t vocab = 258) {
  std::vector<float> logits(vocab);
  for (size_t id = 0; id < logits.size(); ++id) logits[id] = static_cast<float>(6 * counter_uniform(3, id) - 2);
  return logits;
}

// The tokens that `generate` samples, with and without a grammar.
TEST(TokenDrawer, DrawsAsSamplerAndAllowedTokensDo) {
  const std::vector<float> logits = drawer_logits();
  TokenDrawer drawer(258);
  ByteGrammar of("[b-k]");
  for (const SamplingOptions& options : {SamplingOptions{0}, SamplingOptions{1}, SamplingOptions{0.7, 0.8},
                                         SamplingOptions{1, 1, 4}, SamplingOptions{2, 0.9, 9, 8}}) {
    Sampler sampler(options, 258);
    AllowedTokens allowed(&of.matcher(), 258);
    std::vector<int32_t> tokens;
    for (int64_t position = 0; position < 50; ++position, tokens.push_back(1)) {
      EXPECT_EQ(drawer.draw(options, logits, tokens, 0, nullptr), sampler.pick(logits, position));
      EXPECT_EQ(drawer.draw(options, logits, tokens, 0, &of.matcher()), allowed.pick(sampler, logits, position));
    }
  }
}

TEST(TokenDrawer, BannedTokensAreNotDrawnUnlessTheGrammarHasNothingElse) {
  const std::vector<float> logits = drawer_logits();
  TokenDrawer drawer(258);
  const SamplingOptions greedy{0};
  const int32_t best = drawer.draw(greedy, logits, {}, 0, nullptr);
  const std::vector<int32_t> banned{best, -1, 300};
  const int32_t next = drawer.draw(greedy, logits, {}, 0, nullptr, banned);
  EXPECT_NE(next, best);
  std::vector<float> others = logits;
  others.erase(others.begin() + best);
  EXPECT_EQ(logits[static_cast<size_t>(next)], *std::ranges::max_element(others));
  ByteGrammar one("b");
  const std::vector<int32_t> only{'b'};
  EXPECT_EQ(drawer.draw(greedy, logits, {}, 0, &one.matcher(), only), 'b');
}

// Greedy decoding with logits changed by the formulas.
TEST(TokenDrawer, BiasAndPenaltiesChangeTheLogits) {
  const std::vector<float> logits = drawer_logits(40);
  const std::vector<int32_t> tokens = {3, 4, 4, 9, 5, 5, 5, 9, 11};  // 4 of the prompt
  TokenDrawer drawer(40);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SamplingOptions options{0};
    options.presence_penalty = 4 * counter_uniform(seed, 1) - 2;
    options.frequency_penalty = 4 * counter_uniform(seed, 2) - 2;
    options.repetition_penalty = 0.5 + counter_uniform(seed, 3);
    options.logit_bias = {{static_cast<int32_t>(seed % 40), 3.0f}, {5, 2.0f}};
    std::vector<double> wanted(logits.begin(), logits.end());
    for (const auto& [id, bias] : options.logit_bias) wanted[static_cast<size_t>(id)] += bias;
    for (const int32_t id : {3, 4, 5, 9, 11}) {
      double& logit = wanted[static_cast<size_t>(id)];
      logit = logit > 0 ? logit / options.repetition_penalty : logit * options.repetition_penalty;
      const auto times = static_cast<double>(std::count(tokens.begin() + 4, tokens.end(), id));
      logit -= options.frequency_penalty * times + (times > 0 ? options.presence_penalty : 0);
    }
    const auto best = std::max_element(wanted.begin(), wanted.end()) - wanted.begin();
    EXPECT_EQ(drawer.draw(options, logits, tokens, 4, nullptr), best) << seed;
  }
  // No state of a text remains.
  EXPECT_EQ(drawer.draw({0}, logits, {}, 0, nullptr), std::max_element(logits.begin(), logits.end()) - logits.begin());
}

TEST(Sampler, MinPKeepsWhatIsLikelyBesideTheLikeliest) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f), -INFINITY};
  const auto kept = [&](double min_p, double top_p, int64_t top_k) {
    SamplingOptions options{1, top_p, top_k, 9};
    options.min_p = min_p;
    Sampler sampler(options, 5);
    std::set<int32_t> ids;
    for (int64_t position = 0; position < 2000; ++position) ids.insert(sampler.pick(logits, position));
    return ids.size();
  };
  EXPECT_EQ(kept(0, 1, 0), 4u);
  EXPECT_EQ(kept(0.25, 1, 0), 3u);
  EXPECT_EQ(kept(0.35, 1, 0), 2u);
  EXPECT_EQ(kept(1, 1, 0), 1u);
  EXPECT_EQ(kept(0.25, 1, 2), 2u);
  EXPECT_EQ(kept(0.25, 1, 4), 3u);
  // The share is relative to what min_p leaves: 0.5 / 0.8.
  EXPECT_EQ(kept(0.35, 0.62, 0), 1u);
  EXPECT_EQ(kept(0.35, 0.63, 0), 2u);
}

TEST(LogProbabilities, AreTheSoftmaxInDouble) {
  std::vector<float> logits = drawer_logits(5000);
  logits[17] = logits[4000] = 9, logits[3] = NAN, logits[4] = -INFINITY;
  double sum = 0;
  for (const float logit : logits) sum += std::isnan(logit) ? 0 : std::exp(static_cast<double>(logit));
  LogProbabilities log_probabilities(5000, 20);
  const SequenceToken token = log_probabilities.score(logits, 100, 20);
  EXPECT_EQ(token.id, 100);
  EXPECT_NEAR(*token.logprob, logits[100] - std::log(sum), 1e-6);
  ASSERT_EQ(token.best.size(), 20u);
  EXPECT_EQ(token.best[0].id, 17) << "ties: the lower id";
  EXPECT_EQ(token.best[1].id, 4000);
  std::vector<int32_t> order(5000);
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](int32_t id) {
    return std::isnan(logits[static_cast<size_t>(id)]) ? -INFINITY : logits[static_cast<size_t>(id)];
  };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logit(a) > logit(b); });
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(token.best[i].id, order[i]);
    EXPECT_NEAR(token.best[i].logprob, logit(order[i]) - std::log(sum), 1e-6);
  }
  EXPECT_EQ(*log_probabilities.score(logits, 3, 0).logprob, -INFINITY);
  EXPECT_TRUE(log_probabilities.score(logits, 3, 0).best.empty());
}

}  // namespace
}  // namespace headroom
