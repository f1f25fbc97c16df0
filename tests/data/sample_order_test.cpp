#include "data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"

namespace headroom {
namespace {

std::vector<int64_t> epoch_of(const SampleOrder& order, int64_t epoch) {
  std::vector<int64_t> visited;
  for (int64_t i = 0; i < order.sequences(); ++i) visited.push_back(order.at(epoch * order.sequences() + i));
  return visited;
}

TEST(SampleOrder, EveryEpochVisitsEachSequenceOnce) {
  for (const int64_t n : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 4097}) {
    const SampleOrder order(n, 42, true);
    for (const int64_t epoch : {0, 1, 7}) {
      auto visited = epoch_of(order, epoch);
      std::sort(visited.begin(), visited.end());
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(visited[static_cast<size_t>(i)], i) << n << " in epoch " << epoch;
    }
  }
}

TEST(SampleOrder, WithoutShufflingFilesAreReadInOrder) {
  const SampleOrder order(5, 42, false);
  EXPECT_EQ(epoch_of(order, 0), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(order.at(13), 3);
}

TEST(SampleOrder, DependsOnSeedAndEpochAndNothingElse) {
  const SampleOrder order(1000, 42, true);
  EXPECT_EQ(epoch_of(order, 3), epoch_of(SampleOrder(1000, 42, true), 3));
  EXPECT_NE(epoch_of(order, 0), epoch_of(order, 1));
  EXPECT_NE(epoch_of(order, 0), epoch_of(SampleOrder(1000, 43, true), 0));
  EXPECT_NE(epoch_of(order, 1), epoch_of(SampleOrder(1000, 43, true), 0));
}

// A resumed run must see the same order as the interrupted one, on every machine: the order is part of the format.
TEST(SampleOrder, IsPinned) {
  const SampleOrder order(10, 42, true);
  EXPECT_EQ(epoch_of(order, 0), (std::vector<int64_t>{4, 2, 9, 3, 1, 6, 8, 5, 0, 7}));
  EXPECT_EQ(epoch_of(order, 1), (std::vector<int64_t>{0, 6, 5, 2, 3, 1, 7, 4, 8, 9}));
}

// Over 6000 seeds each of the 6 orders of 3 sequences, and each position of 10, is equally frequent within 6 standard
// deviations.
TEST(SampleOrder, IsNotPartial) {
  std::map<std::vector<int64_t>, int> orders;
  for (uint64_t seed = 0; seed < 6000; ++seed) ++orders[epoch_of(SampleOrder(3, seed, true), 0)];
  ASSERT_EQ(orders.size(), 6u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 1000, 175);

  std::vector<int> first(10);
  for (uint64_t epoch = 0; epoch < 10000; ++epoch)
    ++first[static_cast<size_t>(SampleOrder(10, 7, true).at(static_cast<int64_t>(epoch) * 10))];
  for (const int count : first) EXPECT_NEAR(count, 1000, 180);
}

TEST(SampleOrder, NeighboursAreScattered) {
  const SampleOrder order(1 << 20, 1, true);
  int near = 0;
  for (int64_t i = 0; i < 10000; ++i) near += std::abs(order.at(i) - order.at(i + 1)) < 1000;
  EXPECT_LT(near, 60);  // 2000 / 2^20 of them are expected: 19
}

TEST(SampleRange, BatchesNeverCrossAnEpoch) {
  EXPECT_EQ(steps_per_epoch(10, 4), 3);
  EXPECT_EQ(steps_per_epoch(8, 4), 2);
  EXPECT_EQ(steps_per_epoch(3, 8), 1);
  int64_t next = 0;
  for (int64_t step = 0; step < 9; ++step) {
    const SampleRange range = samples_of_step(step, 10, 4);
    EXPECT_EQ(range.first, next);
    EXPECT_EQ(range.count, step % 3 == 2 ? 2 : 4);
    EXPECT_EQ(range.epoch, step / 3);
    next += range.count;
  }
  const SampleRange resumed = samples_from(14, 10, 8);
  EXPECT_EQ(resumed.count, 6);
  EXPECT_EQ(resumed.epoch, 1);
  EXPECT_EQ(samples_of_step(5, 3, 8).first, 15);
  EXPECT_THROW(samples_of_step(-1, 3, 8), InternalError);
}

}  // namespace
}  // namespace headroom
