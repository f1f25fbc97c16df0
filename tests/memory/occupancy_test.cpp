#include "memory/occupancy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "random_buffers.h"

namespace headroom {
namespace {

// The same search by brute force over all items with an offset.
int64_t plain_gap(const std::vector<std::pair<TimelineItem, int64_t>>& placed, const TimelineItem& item, FitRule rule) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const auto& [other, offset] : placed) {
    if (other.lower < item.upper && item.lower < other.upper) taken.emplace_back(offset, offset + other.size);
  }
  std::sort(taken.begin(), taken.end());
  int64_t cursor = 0;
  int64_t best = -1;
  int64_t best_gap = 0;
  for (const auto& [offset, end] : taken) {
    const int64_t gap = offset - cursor;
    if (gap >= item.size && (best < 0 || (rule == FitRule::best && gap < best_gap))) {
      best = cursor;
      best_gap = gap;
    }
    cursor = std::max(cursor, end);
  }
  return best >= 0 ? best : cursor;
}

// Every few items one gets a random offset, so that there are gaps of many sizes.
void compare_with_plain_search(uint64_t seed, int count, int64_t slots, FitRule rule) {
  std::mt19937_64 random(seed);
  const Timeline timeline = make_timeline(testing::random_buffers(random, count, slots, 50), 1);
  Occupancy occupancy(timeline);
  for (int round = 0; round < 2; ++round) {
    occupancy.clear();
    std::vector<std::pair<TimelineItem, int64_t>> placed;
    for (const TimelineItem& item : timeline.items) {
      if (item.size == 0) continue;
      const int64_t found = occupancy.find_gap(item, rule);
      ASSERT_EQ(found, plain_gap(placed, item, rule));
      ASSERT_TRUE(occupancy.is_free(item, found));
      const auto height = static_cast<int64_t>(random() % 4000);
      const bool high = random() % 4 == 0 && occupancy.is_free(item, height);
      const int64_t offset = high ? height : found;
      occupancy.place(item, offset);
      placed.emplace_back(item, offset);
      ASSERT_FALSE(occupancy.is_free(item, offset));
    }
  }
}

TEST(Occupancy, FindsTheGapsAPlainSearchFinds) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (const int64_t slots : {1, 5, 40, 2000}) {
      compare_with_plain_search(seed, 400, slots, FitRule::first);
      compare_with_plain_search(seed, 400, slots, FitRule::best);
    }
  }
}

TEST(Occupancy, WallsThatTouchMergeWithoutHidingGaps) {
  Timeline timeline;
  timeline.slot_starts.resize(100);
  for (int32_t i = 0; i < 100; ++i) timeline.items.push_back({0, 100, 10, -1});
  Occupancy occupancy(timeline);
  for (const int64_t offset : {0, 20, 40, 10, 30}) occupancy.place(timeline.items[0], offset);
  EXPECT_EQ(occupancy.find_gap(timeline.items[0], FitRule::first), 50);
  occupancy.place(timeline.items[0], 75);
  EXPECT_EQ(occupancy.find_gap(timeline.items[0], FitRule::first), 50);
  EXPECT_EQ(occupancy.find_gap({3, 4, 26, -1}, FitRule::first), 85);
}

}  // namespace
}  // namespace headroom
