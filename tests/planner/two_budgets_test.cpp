// Plans with a tier below the device's (host or disk): monotone in both budgets, refusals that name both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../runtime/race_checker.h"
#include "planner/explain.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

using testing::HasSubstr;

bool keeps_nothing(const Plan& plan) {
  return std::all_of(plan.techniques.begin(), plan.techniques.end(), [](const TechniqueReport& technique) {
    return !technique.name.starts_with("offload-") || technique.value == "off";
  });
}

class TwoBudgets : public testing::TestWithParam<Tier> {
 protected:
  PlanRequest request(int64_t memory, int64_t below) const { return tiered_request(GetParam(), memory, below, model_); }
  Plan plan(int64_t memory, int64_t below) const { return search_training_plan(request(memory, below)).plan; }

  const ModelFiles model_ = wide_model();
  const Plan plenty_ = plan(kPlenty, kPlenty);
};

TEST_P(TwoBudgets, MoreOfEitherIsNeverSlower) {
  ASSERT_TRUE(plenty_.feasible);
  EXPECT_TRUE(keeps_nothing(plenty_)) << "with room for everything nothing is copied";
  const Plan least = plan(plenty_.minimum_bytes, kPlenty);
  ASSERT_TRUE(least.feasible);
  EXPECT_FALSE(keeps_nothing(least));
  constexpr int kSteps = 3;
  std::vector<double> before(kSteps, 1e300);
  for (int m = 0; m < kSteps; ++m) {
    double left = 1e300;
    for (int b = 0; b < kSteps; ++b) {
      const int64_t memory = plenty_.minimum_bytes + (plenty_.peak_bytes - plenty_.minimum_bytes) * m / (kSteps - 1);
      const int64_t below = least.below(GetParam()).peak_bytes * (b + 1) / kSteps;
      const Plan chosen = plan(memory, below);
      const double seconds = chosen.feasible ? chosen.step_seconds : 1e299;
      if (chosen.feasible) {
        EXPECT_LE(chosen.peak_bytes, memory);
        EXPECT_LE(chosen.below(GetParam()).peak_bytes, below);
      }
      EXPECT_LE(seconds, left) << memory << " and " << below;
      EXPECT_LE(seconds, before[static_cast<size_t>(b)]) << memory << " and " << below;
      left = before[static_cast<size_t>(b)] = seconds;
    }
  }
  EXPECT_EQ(before.back(), plenty_.step_seconds);
}

TEST_P(TwoBudgets, ARefusalNamesTheLeastOfBoth) {
  constexpr int64_t kLittle = int64_t{1} << 20;
  const PlanRequest asked = request(plenty_.minimum_bytes, kLittle);
  const SearchResult refused = search_training_plan(asked);
  ASSERT_FALSE(refused.plan.feasible);
  EXPECT_GT(refused.plan.minimum_bytes, plenty_.minimum_bytes);
  const int64_t least_below = refused.plan.below(GetParam()).peak_bytes;
  EXPECT_GT(least_below, kLittle);
  EXPECT_THAT(explain(asked, refused), HasSubstr(fmt::format("{} budget 1.00 MiB", tier_name(GetParam()))));
  EXPECT_TRUE(plan(plenty_.minimum_bytes, least_below).feasible);
  EXPECT_TRUE(plan(refused.plan.minimum_bytes, kLittle).feasible);
}

TEST_P(TwoBudgets, WithoutATierNothingIsKeptThere) {
  EXPECT_EQ(plan(kPlenty, 0).below(GetParam()).arena_bytes, 0);
  PlanRequest pinned = request(kPlenty, 0);
  pinned.techniques["offload-optimizer"] = "on";
  EXPECT_THROW(search_training_plan(pinned), Error);
  pinned.techniques["offload-optimizer"] = "off";
  EXPECT_NO_THROW(search_training_plan(pinned));
}

TEST_P(TwoBudgets, ThePlanRunsOnTheNullDeviceWithoutARace) {
  const Plan chosen = plan(plenty_.minimum_bytes, kPlenty);
  RaceChecker device(make_null_device(chosen.facts));
  Executor executor(chosen, device, nullptr);
  const Trips trips[] = {{"micro_batches", 2}, {"eval_batches", 2}};
  for (const PlanProgram& program : chosen.programs) executor.run(program.name, trips);
  EXPECT_THAT(device.races(), testing::IsEmpty());
  EXPECT_GT(device.copies(), 0);
  for (const Tier tier : kArenaTiers) EXPECT_EQ(executor.arena_high_water(tier), chosen.arenas().of(tier));
}

INSTANTIATE_TEST_SUITE_P(Tiers, TwoBudgets, testing::Values(Tier::host, Tier::disk),
                         [](const auto& tier) { return std::string(tier_name(tier.param)); });

}  // namespace
}  // namespace headroom::test
