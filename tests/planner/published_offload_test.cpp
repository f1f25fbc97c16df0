// A 7B model in 24 GiB of a device, with the host below it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../runtime/race_checker.h"
#include "planner/explain.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

// 7B in bf16 with clipping: weights on the device, states and gradients on the host.
TEST(Offload, PlanOf7BIn24GiBOfADevice) {
  TrainOptions options = fixed_options(int64_t{24} << 30);
  options.machine.device = "null";
  options.machine.profile = "H100-80GB";
  options.techniques.precision = "bf16-true";
  options.machine.host_memory = int64_t{100} << 30;
  const ModelFiles model = open_model(published("mistral-7b"));
  const PlanRequest request = training_request(options, model);
  const SearchResult found = search_training_plan(request);
  const Plan& chosen = found.plan;
  ASSERT_TRUE(chosen.feasible) << explain(request, found);
  EXPECT_LE(chosen.peak_bytes, options.machine.memory);
  EXPECT_LE(chosen.host.peak_bytes, options.machine.host_memory);
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
  EXPECT_EQ(tiers.at("host").at("budget_bytes"), options.machine.host_memory);
  EXPECT_EQ(tiers.at("host").at("peak_bytes"), chosen.host.peak_bytes);
}

}  // namespace
}  // namespace headroom::test
