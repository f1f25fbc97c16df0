// When waiting threads spin and when they sleep, with a clock that the test controls.
#include <gtest/gtest.h>

#include "team/waiting.h"

namespace headroom::team {
namespace {

constexpr int64_t kMs = SpinRule::kMillisecond;

TEST(SpinRule, AQuietMachineSpinsLong) {
  SpinRule rule;
  EXPECT_EQ(rule.spin(0, false), SpinRule::kQuietSpin);
  EXPECT_EQ(rule.spin(0, true), SpinRule::kQuietSpin) << "nobody is late on a machine that nobody else uses";
}

TEST(SpinRule, TheSystemsOwnThreadsAreNoNeighbours) {
  SpinRule rule;
  for (int64_t now = 0; now < 1000 * kMs; now += 50 * kMs) {
    rule.switched(now);
    EXPECT_FALSE(rule.busy(now)) << now;
  }
}

TEST(SpinRule, TurnsWithANeighbourShortenTheSpin) {
  SpinRule rule;
  rule.switched(100 * kMs);
  EXPECT_EQ(rule.spin(100 * kMs, false), SpinRule::kQuietSpin);
  rule.switched(104 * kMs);
  EXPECT_EQ(rule.spin(104 * kMs, false), SpinRule::kBusySpin);
  EXPECT_EQ(rule.spin(104 * kMs, true), 0) << "whom it waits for has its CPU";
}

TEST(SpinRule, ANeighbourThatLeftIsForgotten) {
  SpinRule rule;
  rule.switched(0);
  rule.switched(3 * kMs);
  EXPECT_TRUE(rule.busy(3 * kMs + SpinRule::kRemembered - 1));
  EXPECT_FALSE(rule.busy(3 * kMs + SpinRule::kRemembered));
  EXPECT_EQ(rule.spin(3 * kMs + SpinRule::kRemembered, true), SpinRule::kQuietSpin);
}

TEST(NeighboursBetween, ASwitchCountsWhereItCostTime) {
  const ThreadTimes before{0, 0, 5};
  EXPECT_TRUE(neighbours_between(before, {4 * kMs, kMs, 6}));
  EXPECT_FALSE(neighbours_between(before, {4 * kMs, 4 * kMs - 50'000, 9})) << "the system's threads";
  EXPECT_FALSE(neighbours_between(before, {4 * kMs, kMs, 5})) << "it slept";
}

TEST(Signal, AWaitEndsWithTheNumberThatWasSet) {
  SpinRule rule;
  Signal signal;
  signal.set(7);
  EXPECT_EQ(signal.wait(6, rule, [](int) { return false; }), 7u);
}

}  // namespace
}  // namespace headroom::team
