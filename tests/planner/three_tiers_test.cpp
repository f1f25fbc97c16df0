// Plans with host memory and a disk below a device: each offload has its own tier, chosen or pinned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "../runtime/race_checker.h"
#include "planner/alternatives.h"
#include "planner/bounds.h"
#include "planner/candidates.h"
#include "planner/explain.h"
#include "planner/techniques/chunked_loss.h"
#include "planner/techniques/offload.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A GPU that need not exist, with any of the tiers below it.
PlanRequest three_tiers(const TierBytes& budgets, const ModelFiles& model,
                        const std::map<std::string, std::string>& techniques = {}) {
  TrainOptions options = fixed_options(budgets.device);
  options.machine.device = "null";
  options.machine.profile = "H100-80GB";
  options.data.global_batch_size = 2;
  options.data.micro_batch_size = 1;
  options.machine.host_memory = budgets.host;
  options.machine.disk_directory = ".";
  options.machine.disk_memory = budgets.disk;
  options.techniques.pins = techniques;
  PlanRequest request = fixed_request(options, model);
  request.facts.gemm_workspace_cap = 1 << 12;  // otherwise it hides what else the device holds
  request.host_process.gpu = 0;                // the same on the host
  request.prepare = {};
  return request;
}

std::map<std::string, std::string> settings(const Plan& plan) {
  std::map<std::string, std::string> out;
  for (const TechniqueReport& technique : plan.techniques)
    if (technique.name.starts_with("offload-")) out[technique.name] = technique.value;
  return out;
}

void expect_within(const Plan& plan, const TierBytes& budgets) {
  EXPECT_LE(plan.peak_bytes, budgets.device);
  for (const Tier tier : kLowerTiers) EXPECT_LE(plan.below(tier).peak_bytes, budgets.of(tier)) << tier_name(tier);
}

class ThreeTiers : public testing::Test {
 protected:
  Plan plan(const TierBytes& budgets, const std::map<std::string, std::string>& techniques = {}) const {
    return search_training_plan(three_tiers(budgets, model_, techniques)).plan;
  }

  const ModelFiles model_ = wide_model();
  // The least device budget that works with either of the lower tiers.
  const int64_t least_ = std::max(plan({kPlenty, kPlenty, 0}).minimum_bytes, plan({kPlenty, 0, kPlenty}).minimum_bytes);
  const Plan hosted_ = plan({least_, kPlenty, 0});
  const Plan on_disk_ = plan({least_, 0, kPlenty});
};

TEST_F(ThreeTiers, APlanIsFoundWhereNeitherLowerTierAloneHasTheRoom) {
  ASSERT_TRUE(hosted_.feasible && on_disk_.feasible);
  const TierBytes budgets{least_, hosted_.host.peak_bytes * 2 / 3, on_disk_.disk.peak_bytes * 2 / 3};
  EXPECT_FALSE(plan({least_, budgets.host, 0}).feasible);
  EXPECT_FALSE(plan({least_, 0, budgets.disk}).feasible);
  const Plan mixed = plan(budgets);
  ASSERT_TRUE(mixed.feasible);
  expect_within(mixed, budgets);
  EXPECT_GT(mixed.host.arena_bytes, 0);
  EXPECT_GT(mixed.disk.arena_bytes, 0);
  EXPECT_GT(mixed.host_process.copies, 0) << "buffers of the copies to disk";
}

TEST_F(ThreeTiers, TheHostTakesWhatItCanAndMoreOfEitherIsNeverSlower) {
  const Plan both = plan({least_, kPlenty, kPlenty});
  EXPECT_EQ(both.disk.arena_bytes, 0) << "the host is faster";
  EXPECT_EQ(both.step_seconds, hosted_.step_seconds);
  constexpr int kSteps = 4;
  std::vector<double> before(kSteps, 1e300);
  int mixed = 0;
  for (int h = 0; h < kSteps; ++h) {
    double left = 1e300;
    for (int d = 0; d < kSteps; ++d) {
      const TierBytes budgets{least_, hosted_.host.peak_bytes * (h + 1) / kSteps,
                              on_disk_.disk.peak_bytes * (d + 1) / kSteps};
      const Plan chosen = plan(budgets);
      const double seconds = chosen.feasible ? chosen.step_seconds : 1e299;
      if (chosen.feasible) expect_within(chosen, budgets);
      mixed += chosen.feasible && chosen.host.arena_bytes > 0 && chosen.disk.arena_bytes > 0;
      EXPECT_LE(seconds, left) << budgets.host << " and " << budgets.disk;
      EXPECT_LE(seconds, before[static_cast<size_t>(d)]) << budgets.host << " and " << budgets.disk;
      left = before[static_cast<size_t>(d)] = seconds;
    }
  }
  EXPECT_EQ(before.back(), hosted_.step_seconds);
  EXPECT_GT(mixed, 2);
}

TEST_F(ThreeTiers, WhatIsTouchedLeastIsOnDisk) {
  const int64_t room = hosted_.host.peak_bytes - hosted_.host.breakdown.optimizer / 2;
  const Plan mixed = plan({least_, room, kPlenty});
  ASSERT_TRUE(mixed.feasible);
  EXPECT_EQ(settings(mixed).at("offload-optimizer"), "disk");
  EXPECT_EQ(settings(mixed).at("offload-parameters"), "host");
  EXPECT_LT(mixed.step_seconds, on_disk_.step_seconds / 1.5);
}

TEST_F(ThreeTiers, ARefusalNamesTheLeastOfEachTier) {
  const TierBytes budgets{least_, hosted_.host.peak_bytes / 2, on_disk_.disk.peak_bytes / 3};
  const PlanRequest asked = three_tiers(budgets, model_);
  const SearchResult refused = search_training_plan(asked);
  ASSERT_FALSE(refused.plan.feasible);
  const TierBytes least{refused.plan.minimum_bytes, refused.plan.host.peak_bytes, refused.plan.disk.peak_bytes};
  for (const Tier tier : kArenaTiers) {
    SCOPED_TRACE(tier_name(tier));
    TierBytes enough = budgets;
    enough.of(tier) = least.of(tier);
    EXPECT_GT(least.of(tier), budgets.of(tier));
    EXPECT_TRUE(plan(enough).feasible);
    --enough.of(tier);
    EXPECT_FALSE(plan(enough).feasible);
  }
  EXPECT_THAT(explain(asked, refused), AllOf(HasSubstr("host budget"), HasSubstr("disk budget")));
}

TEST_F(ThreeTiers, PinsNameTheTier) {
  const std::map<std::string, std::string> pins{{"offload-optimizer", "disk"},
                                                {"offload-gradients", "host"},
                                                {"offload-parameters", "host"},
                                                {"offload-activations", "disk:2"}};
  const PlanRequest request = three_tiers({kPlenty, kPlenty, kPlenty}, model_, pins);
  const SearchResult found = search_training_plan(request);
  const Plan& pinned = found.plan;
  EXPECT_EQ(settings(pinned), pins);
  EXPECT_GT(pinned.disk.breakdown.optimizer, 0);
  EXPECT_GT(pinned.host.breakdown.gradients, 0);
  EXPECT_GT(pinned.host.breakdown.weights, 0);
  EXPECT_EQ(pinned.host.breakdown.optimizer + pinned.disk.breakdown.gradients + pinned.disk.breakdown.weights, 0);
  EXPECT_THAT(explain(request, found), AllOf(HasSubstr("of host: gradients, weights; "),
                                             HasSubstr("of disk: states, activations of 2 layers; prefetch")));
  EXPECT_EQ(settings(plan({kPlenty, kPlenty, kPlenty}, {{"offload-activations", "disk"}})).at("offload-activations"),
            "disk:6");
  EXPECT_EQ(settings(plan({kPlenty, kPlenty, kPlenty}, {{"offload-activations", "3"}})).at("offload-activations"),
            "host:3");
  EXPECT_EQ(settings(plan({kPlenty, 0, kPlenty}, {{"offload-gradients", "on"}})).at("offload-gradients"), "disk");
}

std::string refusal(const PlanRequest& request) {
  try {
    check_techniques(request);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return std::string(error.what()) + " | " + error.remedy();
  }
  return "accepted";
}

TEST_F(ThreeTiers, PinsOfATierWithoutABudgetAreRefusedWithTheOption) {
  const auto refused = [&](const std::string& value, const TierBytes& budgets, const char* name = "offload-optimizer") {
    return refusal(three_tiers(budgets, model_, {{name, value}}));
  };
  EXPECT_THAT(refused("disk", {kPlenty, kPlenty, 0}), AllOf(HasSubstr("=disk needs"), HasSubstr("--disk-memory")));
  EXPECT_THAT(refused("host", {kPlenty, 0, kPlenty}), AllOf(HasSubstr("=host needs"), HasSubstr("--host-memory")));
  EXPECT_THAT(refused("on", {kPlenty, 0, 0}), AllOf(HasSubstr("--host-memory"), HasSubstr("--disk-memory")));
  for (const char* value : {"device", "nvme", "", "4", "disk:4", "host:"})
    EXPECT_THAT(refused(value, {kPlenty, kPlenty, kPlenty}), HasSubstr("one of on, off, host, disk")) << value;
  for (const char* value : {"disk:0", "disk:", "disk:-3", "disk:4x", "tape:4", "4:disk", "disk:disk", "0", ":4"})
    EXPECT_THAT(refused(value, {kPlenty, kPlenty, kPlenty}, "offload-activations"), HasSubstr("disk:12")) << value;
  TrainOptions cpu = fixed_options();
  cpu.techniques.pins = {{"offload-optimizer", "host"}};
  EXPECT_THAT(refusal(fixed_request(cpu, model_)), HasSubstr("on the CPU device and host share memory"));
}

// One expansion is enough for all tiers: the same bytes and seconds as a graph for each of them.
TEST_F(ThreeTiers, ABoundOfEveryPlaceIsThatOfItsOwnGraph) {
  const PlanRequest request = three_tiers({kPlenty, kPlenty, kPlenty}, model_);
  Bounder bounder(request);
  const CandidateFamily frugal = most_frugal(request);
  EXPECT_EQ(frugal.places.size(), size_t{16});
  const int64_t chunks[] = {64, 0};
  const std::vector<Bound> bounds = bounder.bounds(frugal.candidate, frugal.places, chunks);
  ASSERT_EQ(bounds.size(), 2 * frugal.places.size());
  for (size_t i = 0; i < bounds.size(); ++i) {
    const Bound own = bounder.bound(member(frugal, frugal.places[i / 2], chunks[i % 2]));
    EXPECT_EQ(bounds[i].arenas, own.arenas) << i;
    EXPECT_NEAR(bounds[i].step_seconds, own.step_seconds, 1e-6 * own.step_seconds) << i;
  }
}

TEST_F(ThreeTiers, ABoundIsTheSameWhateverWasBoundBefore) {
  const PlanRequest request = three_tiers({kPlenty, kPlenty, kPlenty}, model_);
  std::vector<Candidate> candidates;
  for (const CandidateFamily& family : families(request)) candidates.push_back(member(family, family.candidate, 64));
  std::mt19937 random(1);
  std::shuffle(candidates.begin(), candidates.end(), random);
  std::stable_sort(candidates.begin() + static_cast<std::ptrdiff_t>(candidates.size() / 2), candidates.end(),
                   expands_before);
  Bounder bounder(request);
  for (const Candidate& candidate : candidates) {
    const Bound bound = bounder.bound(candidate), alone = Bounder(request).bound(candidate);
    EXPECT_EQ(bound.arenas, alone.arenas);
    EXPECT_EQ(bound.step_seconds, alone.step_seconds);
  }
}

TEST_F(ThreeTiers, AMixedPlanRunsOnTheNullDeviceWithoutARace) {
  const Plan chosen =
      plan({least_, kPlenty, kPlenty}, {{"offload-optimizer", "disk"}, {"offload-activations", "disk"}});
  ASSERT_TRUE(chosen.feasible && chosen.host.arena_bytes > 0);
  RaceChecker device(make_null_device(chosen.facts));
  Executor executor(chosen, device, nullptr);
  const Trips trips[] = {{"micro_batches", 2}, {"eval_batches", 2}};
  for (const PlanProgram& program : chosen.programs) executor.run(program.name, trips);
  EXPECT_THAT(device.races(), testing::IsEmpty());
  for (const Tier tier : kArenaTiers) EXPECT_EQ(executor.arena_high_water(tier), chosen.arenas().of(tier));
}

TEST_F(ThreeTiers, TheRemedyBesideAHostIsTheLeastDisk) {
  const PlanRequest request = three_tiers({least_, hosted_.host.peak_bytes * 2 / 3, 0}, model_);
  Plan refused = search_training_plan(request).plan;
  ASSERT_FALSE(refused.feasible);
  find_alternatives(request, {}, refused);
  const std::string fix = refused.cheapest_fix;
  const size_t at = fix.find("--disk-memory DIR:");
  ASSERT_NE(at, fix.npos) << fix;
  const int64_t disk = std::stoll(fix.substr(at + 18));
  EXPECT_LT(disk, on_disk_.disk.peak_bytes);
  EXPECT_TRUE(plan({least_, request.host_budget_bytes, disk}).feasible);
}

}  // namespace
}  // namespace headroom::test
