#include "generate/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace headroom {
namespace {

const std::vector<float> kLogits = {0.5f, 2.0f, -1.0f, 1.5f, 2.0f, -INFINITY};

std::map<int32_t, double> frequencies(const SamplingOptions& options, const std::vector<float>& logits,
                                      int draws = 20000) {
  Sampler sampler(options, static_cast<int64_t>(logits.size()));
  std::map<int32_t, double> counts;
  for (int n = 0; n < draws; ++n) counts[sampler.pick(logits, n)] += 1.0 / draws;
  return counts;
}

TEST(Sampler, GreedyTakesTheFirstOfTheLargest) {
  for (const SamplingOptions& options : {SamplingOptions{0, 1, 0, 1}, SamplingOptions{1, 1, 1, 1}}) {
    Sampler sampler(options, 6);
    for (int64_t position = 0; position < 20; ++position) EXPECT_EQ(sampler.pick(kLogits, position), 1);
  }
}

TEST(Sampler, DrawsFollowSoftmax) {
  for (const double temperature : {0.5, 1.0, 2.0}) {
    double sum = 0;
    for (float logit : kLogits) sum += std::exp(logit / temperature);
    const auto seen = frequencies({temperature, 1, 0, 3}, kLogits);
    EXPECT_FALSE(seen.contains(5)) << "-inf is never drawn";
    for (const auto& [id, share] : seen)
      EXPECT_NEAR(share, std::exp(kLogits[static_cast<size_t>(id)] / temperature) / sum, 0.015)
          << "temperature " << temperature << ", id " << id;
  }
}

TEST(Sampler, TopKKeepsTheLargest) {
  const auto seen = frequencies({1, 1, 3, 5}, kLogits);
  EXPECT_EQ(seen.size(), 3u);
  for (int32_t id : {1, 3, 4}) EXPECT_TRUE(seen.contains(id)) << id;
  const double sum = 2 * std::exp(2.0) + std::exp(1.5);
  EXPECT_NEAR(seen.at(3), std::exp(1.5) / sum, 0.015);
  EXPECT_EQ(frequencies({1, 1, 100, 5}, kLogits), frequencies({1, 1, 0, 5}, kLogits));
}

TEST(Sampler, TopPKeepsTheLeastMass) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  const auto kept = [&](double p) {
    std::set<int32_t> ids;
    for (const auto& [id, share] : frequencies({1, p, 0, 9}, logits)) ids.insert(id);
    return ids;
  };
  EXPECT_EQ(kept(0.4), (std::set<int32_t>{0}));
  EXPECT_EQ(kept(0.6), (std::set<int32_t>{0, 1}));
  EXPECT_EQ(kept(0.9), (std::set<int32_t>{0, 1, 2}));
  EXPECT_EQ(kept(1.0), (std::set<int32_t>{0, 1, 2, 3}));
  EXPECT_NEAR(frequencies({1, 0.6, 0, 9}, logits).at(0), 0.625, 0.015);
}

TEST(Sampler, TheSeedDecides) {
  const std::vector<float> flat(100, 0.0f);
  const auto draw = [&](uint64_t seed) {
    Sampler sampler({1, 1, 0, seed}, 100);
    std::vector<int32_t> ids;
    for (int64_t position = 0; position < 50; ++position) ids.push_back(sampler.pick(flat, position));
    return ids;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
  // The draw of a position does not depend on those before it.
  Sampler sampler({1, 1, 0, 1}, 100);
  EXPECT_EQ(sampler.pick(flat, 31), draw(1)[31]);
}

}  // namespace
}  // namespace headroom
