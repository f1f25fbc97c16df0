// The plans for a sequence of budgets.
#include <gtest/gtest.h>

#include "planning_case.h"

namespace headroom::test {
namespace {

std::vector<Plan> bought_plans(PlanRequest request, int64_t most) {
  request.budget_bytes = kPlenty;
  std::vector<Plan> plans;
  search_by_budget(request, most, [&](const Plan& plan) {
    plans.push_back(plan);
    return true;
  });
  return plans;
}

void expect_plans_of_their_own_budgets(PlanRequest request, int64_t most) {
  const std::vector<Plan> plans = bought_plans(request, most);
  ASSERT_GT(plans.size(), 2u);
  EXPECT_EQ(plans.back().peak_bytes, plans.back().minimum_bytes);
  for (size_t i = 0; i < plans.size(); ++i) {
    if (i > 0) {
      EXPECT_LT(plans[i].peak_bytes, plans[i - 1].peak_bytes);
      EXPECT_GE(plans[i].step_seconds, plans[i - 1].step_seconds);
    }
    request.budget_bytes = plans[i].peak_bytes;
    const Plan alone = search_training_plan(request).plan;
    Plan same = plans[i];
    same.budget_bytes = request.budget_bytes;
    EXPECT_EQ(plan_json(same), plan_json(alone));
    EXPECT_EQ(plan_text(same), plan_text(alone));
  }
}

TEST(ByBudget, EachPlanIsThatOfItsPeak) {
  TrainOptions options = fixed_options(int64_t{1} << 20);
  options.data.global_batch_size = 8;
  expect_plans_of_their_own_budgets(fixed_request(options, small_model()), 1000);
}

// Among plans that are equally fast because copies are hidden.
TEST(ByBudget, WithATierBelowToo) {
  expect_plans_of_their_own_budgets(tiered_request(Tier::disk, kPlenty, kPlenty, wide_model()), 12);
}

TEST(ByBudget, LeavesOutPlansThatAreClose) {
  TrainOptions options = fixed_options(int64_t{1} << 20);
  options.data.global_batch_size = 8;
  const PlanRequest request = fixed_request(options, small_model());
  const std::vector<Plan> all = bought_plans(request, 1000), few = bought_plans(request, 4);
  EXPECT_GT(all.size(), 5u);
  EXPECT_LE(few.size(), 5u);
  EXPECT_EQ(few.front().peak_bytes, all.front().peak_bytes);
  EXPECT_EQ(few.back().peak_bytes, all.back().peak_bytes);
}

TEST(ByBudget, BeginsWithTheRequestsBudgetAndEndsWhereNoneIsWanted) {
  TrainOptions options = fixed_options(kPlenty);
  options.data.global_batch_size = 8;
  PlanRequest request = fixed_request(options, small_model());
  const std::vector<Plan> all = bought_plans(request, 1000);
  request.budget_bytes = all[1].peak_bytes;
  std::vector<int64_t> peaks;
  search_by_budget(request, 1000, [&](const Plan& plan) {
    peaks.push_back(plan.peak_bytes);
    return peaks.size() < 2;
  });
  EXPECT_EQ(peaks, (std::vector{all[1].peak_bytes, all[2].peak_bytes}));
}

TEST(ByBudget, NothingFitsTheOtherTiers) {
  PlanRequest request = tiered_request(Tier::disk, kPlenty, int64_t{1} << 20, wide_model());
  request.techniques["offload-optimizer"] = {"disk"};
  const std::vector<Plan> plans = bought_plans(request, 10);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_FALSE(plans.front().feasible);
}

}  // namespace
}  // namespace headroom::test
