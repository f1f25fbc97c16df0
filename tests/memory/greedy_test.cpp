#include "memory/greedy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "memory/squeaky_wheel.h"
#include "random_buffers.h"

namespace headroom {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

Timeline small_timeline() {
  // Live bytes by slot: 30 50 50 100 80.
  return make_timeline(std::vector<Buffer>{{0, 0, 3, 30, -1}, {1, 1, 4, 20, -1}, {2, 3, 5, 80, -1}, {3, 2, 3, 0, -1}},
                       1);
}

TEST(Greedy, OrdersFollowTheirRules) {
  const Timeline timeline = small_timeline();
  EXPECT_EQ(make_order(timeline, OrderRule::duration), (PlacementOrder{0, 1, 2, 3}));
  EXPECT_EQ(make_order(timeline, OrderRule::size_then_start), (PlacementOrder{2, 0, 1, 3}));
  EXPECT_EQ(make_order(timeline, OrderRule::area), (PlacementOrder{2, 0, 1, 3}));
  EXPECT_EQ(make_order(timeline, OrderRule::end_descending), (PlacementOrder{2, 1, 0, 3}));
  EXPECT_EQ(make_order(timeline, OrderRule::start), (PlacementOrder{0, 1, 3, 2}));
  EXPECT_EQ(make_order(timeline, OrderRule::crowding_then_size), (PlacementOrder{2, 1, 0, 3}));
  EXPECT_EQ(make_order(timeline, OrderRule::crowding_then_end), (PlacementOrder{2, 1, 0, 3}));
  EXPECT_EQ(make_order(timeline, OrderRule::crowding_then_early_end), (PlacementOrder{1, 2, 0, 3}));
  EXPECT_EQ(make_order(timeline, OrderRule::size_then_end), (PlacementOrder{2, 0, 1, 3}));
  EXPECT_EQ(make_order(timeline, OrderRule::size_then_duration), (PlacementOrder{2, 0, 1, 3}));
}

TEST(Greedy, EveryOrderIsAPermutation) {
  std::mt19937_64 random(1);
  const Timeline timeline = make_timeline(testing::random_buffers(random, 200, 30, 5), 1);
  for (const OrderRule rule : kAllOrderRules) {
    PlacementOrder order = make_order(timeline, rule);
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], static_cast<int32_t>(i));
  }
}

TEST(Greedy, APassReportsWhatEndsTooHighAndStopsAtTheLimit) {
  const Timeline timeline = small_timeline();
  Occupancy occupancy(timeline);
  const PlacementOrder order = {0, 1, 2, 3};
  const auto pass = place_in_order(timeline, order, FitRule::first, 60, kNoLimit, occupancy);
  ASSERT_TRUE(pass);
  EXPECT_EQ(pass->offsets, (std::vector<int64_t>{0, 30, 50, 0}));
  EXPECT_EQ(pass->peak, 130);
  EXPECT_EQ(pass->too_high, (std::vector<int32_t>{2}));
  EXPECT_FALSE(place_in_order(timeline, order, FitRule::first, 60, 129, occupancy));
  EXPECT_TRUE(place_in_order(timeline, order, FitRule::first, 60, 130, occupancy));
}

TEST(Greedy, SqueakyWheelRepairsABadOrder) {
  const Timeline timeline = small_timeline();
  Occupancy occupancy(timeline);
  const PlacementOrder order = {0, 1, 2, 3};
  const auto pass = place_in_order(timeline, order, FitRule::first, 100, kNoLimit, occupancy);
  const GreedyPass better = squeaky_wheel(timeline, order, *pass, {100, 50, kNoLimit, FitRule::first}, occupancy);
  EXPECT_EQ(better.peak, 100);
  const GreedyPass same = squeaky_wheel(timeline, order, *pass, {100, 0, kNoLimit, FitRule::first}, occupancy);
  EXPECT_EQ(same.offsets, pass->offsets);
}

}  // namespace
}  // namespace headroom
