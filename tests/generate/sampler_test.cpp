#include "generate/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
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
  // Sampling at a position does not depend on earlier ones.
  Sampler sampler({1, 1, 0, 1}, 100);
  EXPECT_EQ(sampler.pick(flat, 31), draw(1)[31]);
}

// Sorts all tokens, cuts, and goes through them in that order; by id if nothing is cut.
int32_t plain_pick(const std::vector<float>& logits, const SamplingOptions& options, int64_t position) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const bool cut = options.top_p < 1 || (options.top_k > 0 && options.top_k < static_cast<int64_t>(logits.size()));
  const auto logit = [&](int32_t id) { return logits[static_cast<size_t>(id)]; };
  if (cut) std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logit(a) > logit(b); });
  if (cut && options.top_k > 0) order.resize(static_cast<size_t>(options.top_k));
  const auto sum_of = [&] {
    double sum = 0;
    for (const int32_t id : order) sum += std::exp(logit(id) / options.temperature);
    return sum;
  };
  double mass = 0, all = sum_of();
  size_t kept = 0;
  while (kept < order.size() && mass < options.top_p * all)
    mass += std::exp(logit(order[kept++]) / options.temperature);
  order.resize(kept);
  double left = counter_uniform(options.seed, static_cast<uint64_t>(position)) * sum_of();
  for (const int32_t id : order)
    if ((left -= std::exp(logit(id) / options.temperature)) < 0) return id;
  return order.back();
}

// Flat logits, and peaked ones, of which a few ids have nearly all of the sum.
TEST(Sampler, PicksAsSortingEverythingDoes) {
  for (const double spread : {8.0, 60.0}) {
    std::vector<float> logits(7000);
    for (size_t id = 0; id < logits.size(); ++id) logits[id] = static_cast<float>(spread * counter_uniform(11, id));
    // Ties, of which no fraction is a whole number below.
    for (size_t id = 0; id < logits.size(); id += 3) logits[id] = std::round(logits[id]);
    for (const double top_p : {0.011, 0.31, 0.91, 0.999, 1.0})
      for (const int64_t top_k : {0, 2, 50, 900, 7000}) {
        const SamplingOptions options{0.7, top_p, top_k, 4};
        Sampler sampler(options, 7000);
        for (int64_t position = 0; position < 8; ++position)
          EXPECT_EQ(sampler.pick(logits, position), plain_pick(logits, options, position))
              << spread << ' ' << top_p << ' ' << top_k;
      }
  }
}

TEST(Sampler, NeverDrawsWhatIsNoNumber) {
  std::vector<float> logits(5000, NAN);
  logits[4321] = 1, logits[17] = 0.5f;
  for (const SamplingOptions& options :
       {SamplingOptions{}, SamplingOptions{0}, SamplingOptions{1, 0.9}, SamplingOptions{1, 1, 40}}) {
    Sampler sampler(options, 5000);
    for (int64_t position = 0; position < 40; ++position)
      EXPECT_THAT(sampler.pick(logits, position), testing::AnyOf(4321, 17));
  }
  EXPECT_EQ(Sampler({}, 5000).pick(std::vector<float>(5000, NAN), 0), 0);
  EXPECT_EQ(Sampler({}, 5000).pick(std::vector<float>(5000, -INFINITY), 0), 0);
}

}  // namespace
}  // namespace headroom
