// Plans with a second tier: monotone in both budgets, refusals that name both, a 7B model in 24 GiB of a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../runtime/race_checker.h"
#include "planner/explain.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

using testing::HasSubstr;

PlanRequest tiered_request(int64_t device, int64_t host, const ModelFiles& model) {
  TrainOptions options = fixed_options(device);
  options.global_batch_size = 2;
  options.micro_batch_size = 1;
  PlanRequest request = fixed_request(options, model);
  request.host_budget_bytes = host;
  return request;
}

bool keeps_nothing(const Plan& plan) {
  return std::all_of(plan.techniques.begin(), plan.techniques.end(), [](const TechniqueReport& technique) {
    return !technique.name.starts_with("offload-") || technique.value == "off";
  });
}

constexpr int64_t kPlenty = int64_t{1} << 50;

TEST(TwoBudgets, MoreOfEitherIsNeverSlower) {
  const ModelFiles model = small_model();
  const Plan plenty = search_training_plan(tiered_request(kPlenty, kPlenty, model)).plan;
  ASSERT_TRUE(plenty.feasible);
  EXPECT_TRUE(keeps_nothing(plenty));  // with room for everything nothing is copied
  const Plan least = search_training_plan(tiered_request(plenty.minimum_bytes, kPlenty, model)).plan;
  ASSERT_TRUE(least.feasible);
  EXPECT_FALSE(keeps_nothing(least));
  constexpr int kSteps = 4;
  std::vector<double> before(kSteps, 1e300);
  for (int d = 0; d < kSteps; ++d) {
    double left = 1e300;
    for (int h = 0; h < kSteps; ++h) {
      const int64_t device = plenty.minimum_bytes + (plenty.peak_bytes - plenty.minimum_bytes) * d / (kSteps - 1);
      const int64_t host = least.host.peak_bytes * (h + 1) / kSteps;
      const Plan chosen = search_training_plan(tiered_request(device, host, model)).plan;
      const double seconds = chosen.feasible ? chosen.step_seconds : 1e299;
      if (chosen.feasible) {
        EXPECT_LE(chosen.peak_bytes, device);
        EXPECT_LE(chosen.host.peak_bytes, host);
      }
      EXPECT_LE(seconds, left) << device << " and " << host;
      EXPECT_LE(seconds, before[static_cast<size_t>(h)]) << device << " and " << host;
      left = before[static_cast<size_t>(h)] = seconds;
    }
  }
  EXPECT_EQ(before.back(), plenty.step_seconds);
}

TEST(TwoBudgets, ARefusalNamesTheLeastOfBoth) {
  const ModelFiles model = small_model();
  const Plan plenty = search_training_plan(tiered_request(kPlenty, kPlenty, model)).plan;
  PlanRequest request = tiered_request(plenty.minimum_bytes, int64_t{1} << 20, model);
  SearchResult refused = search_training_plan(request);
  ASSERT_FALSE(refused.plan.feasible);
  EXPECT_GT(refused.plan.minimum_bytes, request.budget_bytes);
  EXPECT_GT(refused.plan.host.peak_bytes, request.host_budget_bytes);
  EXPECT_THAT(explain(request, refused), HasSubstr("host budget 1.00 MiB"));
  request.host_budget_bytes = refused.plan.host.peak_bytes;
  EXPECT_TRUE(search_training_plan(request).plan.feasible);
  request.host_budget_bytes = int64_t{1} << 20;
  request.budget_bytes = refused.plan.minimum_bytes;
  EXPECT_TRUE(search_training_plan(request).plan.feasible);
}

TEST(TwoBudgets, WithoutAHostNothingChanges) {
  const ModelFiles model = small_model();
  const Plan one = search_training_plan(tiered_request(kPlenty, 0, model)).plan;
  EXPECT_EQ(one.host.arena_bytes, 0);
  PlanRequest request = tiered_request(kPlenty, 0, model);
  request.techniques["offload-optimizer"] = "on";
  EXPECT_THROW(search_training_plan(request), Error);
  request.techniques["offload-optimizer"] = "off";
  EXPECT_NO_THROW(search_training_plan(request));
}

// 7B in bf16 with clipping: weights on the device, states and gradients on the host.
TEST(TwoBudgets, PlanOf7BIn24GiBOfADevice) {
  if (!std::filesystem::exists(published("mistral-7b"))) GTEST_SKIP() << "no ../shared";
  TrainOptions options = fixed_options(int64_t{24} << 30);
  options.device = "null";
  options.profile = "H100-80GB";
  options.precision = "bf16-true";
  options.host_memory = int64_t{100} << 30;
  const ModelFiles model = open_model(published("mistral-7b"));
  const PlanRequest request = training_request(options, model);
  const SearchResult found = search_training_plan(request);
  const Plan& chosen = found.plan;
  ASSERT_TRUE(chosen.feasible) << explain(request, found);
  EXPECT_LE(chosen.peak_bytes, options.memory);
  EXPECT_LE(chosen.host.peak_bytes, options.host_memory);
  EXPECT_GT(chosen.host.breakdown.optimizer, int64_t{50} << 30);
  RaceChecker device(make_null_device(chosen.facts));
  Executor executor(chosen, device, nullptr);
  const Trips trips[] = {{"micro_batches", 2}, {"eval_batches", 2}};
  for (const PlanProgram& program : chosen.programs) executor.run(program.name, trips);
  EXPECT_THAT(device.races(), testing::IsEmpty());
  EXPECT_EQ(executor.arena_high_water(), chosen.arena_bytes);
  EXPECT_EQ(executor.arena_high_water(Tier::host), chosen.host.arena_bytes);
  const Json tiers = Json::parse(plan_json(chosen)).at("tiers");
  EXPECT_EQ(tiers.at("device").at("peak_bytes"), chosen.peak_bytes);
  EXPECT_EQ(tiers.at("host").at("budget_bytes"), options.host_memory);
  EXPECT_EQ(tiers.at("host").at("peak_bytes"), chosen.host.peak_bytes);
}

}  // namespace
}  // namespace headroom::test
