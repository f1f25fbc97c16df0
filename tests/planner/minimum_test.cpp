// The least budgets by kind of technique.
#include "engine/minimum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning_case.h"

namespace headroom::test {
namespace {

TrainOptions options_of_eight() {
  TrainOptions options = fixed_options(int64_t{100} << 20);
  options.data.global_batch_size = 8;
  return options;
}

std::string change(const MinimumLevel& level, const std::string& option) {
  for (const auto& [name, value] : level.changes)
    if (name == option) return value;
  return "unchanged";
}

// Plans the level again.
Plan planned(const MinimumLevel& level, TrainOptions options, const ModelFiles& model, int64_t less) {
  for (const auto& [name, value] : level.changes) {
    if (name == "memory") options.machine.memory = std::stoll(value) - less;
    if (name == "arithmetic") options.techniques.arithmetic = value;
    if (name == "precision") options.techniques.precision = value;
    if (name == "lora-r") options.techniques.lora.rank = std::stoll(value);
    if (name == "optim") options.optimizer.optim = value;
    if (name == "allow") options.techniques.allow = {value};
    if (name == "technique")
      options.techniques.pins[value.substr(0, value.find('='))] = value.substr(value.find('=') + 1);
  }
  return search_training_plan(training_request(options, model)).plan;
}

TEST(Minimum, EachLevelIsTheLeastBudgetOfItsOptions) {
  const TrainOptions options = options_of_eight();
  const ModelFiles model = wide_model();  // its values in bf16 save more than the tables of casts take
  const std::vector<MinimumLevel> levels = least_budgets(options, model);
  ASSERT_EQ(levels.size(), 4u);
  EXPECT_EQ(change(levels[0], "arithmetic"), "fixed");
  EXPECT_EQ(change(levels[1], "arithmetic"), "unchanged");
  for (size_t i = 0; i < levels.size(); ++i) {
    EXPECT_EQ(levels[i].allow, static_cast<TechniqueKind>(i));
    EXPECT_LE(levels[i].minimum_bytes, levels[i == 0 ? 0 : i - 1].minimum_bytes);
    const Plan plan = planned(levels[i], options, model, 0);
    EXPECT_TRUE(plan.feasible);
    EXPECT_EQ(plan.minimum_bytes, levels[i].minimum_bytes);
    EXPECT_EQ(plan.step_seconds, levels[i].step_seconds);
    EXPECT_EQ(taken_techniques(plan), levels[i].techniques);
    EXPECT_FALSE(planned(levels[i], options, model, 1).feasible);
  }
  EXPECT_LT(levels[3].minimum_bytes, levels[2].minimum_bytes);
  EXPECT_EQ(change(levels[3], "lora-r"), "16");
  EXPECT_EQ(change(levels[3], "precision"), "bf16-true");
  EXPECT_EQ(change(levels[3], "optim"), "adamw_bnb_8bit");
  EXPECT_THAT(levels[3].techniques, testing::Contains(testing::Pair("lora", "rank 16")));
  EXPECT_THAT(levels[3].techniques, testing::Contains(testing::Pair("quantize-weights", "nf4")));
}

// Techniques that the options name are used at every level; techniques that they allow are what differs.
TEST(Minimum, NamedTechniquesHoldAtEveryLevelAndAllowedOnesDoNot) {
  TrainOptions options = options_of_eight();
  options.techniques.precision = "bf16-true";
  options.techniques.pins["recompute"] = "off";
  options.techniques.allow = {"data-order"};
  const std::vector<MinimumLevel> levels = least_budgets(options, small_model());
  for (const MinimumLevel& level : levels) {
    EXPECT_THAT(level.techniques, testing::Contains(testing::Pair("bf16-true", "on")));
    EXPECT_THAT(level.techniques, testing::Not(testing::Contains(testing::Key("recompute"))));
    EXPECT_EQ(change(level, "precision"), "unchanged");
  }
  EXPECT_EQ(change(levels[0], "allow"), "");
  EXPECT_EQ(change(levels[1], "allow"), "");
}

TEST(Minimum, ATierBelowHoldsWhatTheDeviceDoesNot) {
  TrainOptions options = options_of_eight();
  const int64_t alone = least_budgets(options, wide_model()).front().minimum_bytes;
  options.machine.disk_directory = ".";
  options.machine.disk_memory = int64_t{1} << 40;
  const MinimumLevel exact = least_budgets(options, wide_model()).front();
  EXPECT_LT(exact.minimum_bytes, alone);
  EXPECT_EQ(exact.host_bytes, exact.minimum_bytes);  // on the CPU the budget is that of the host
  EXPECT_GT(exact.disk_bytes, 0);
  EXPECT_THAT(exact.techniques, testing::Contains(testing::Key("offload-optimizer")));
}

TEST(Minimum, BudgetsOfTiersThatHoldNoPlanAreRefused) {
  TrainOptions options = options_of_eight();
  options.machine.disk_directory = ".";
  options.machine.disk_memory = int64_t{1} << 20;
  options.techniques.pins["offload-optimizer"] = "disk";
  try {
    least_budgets(options, wide_model());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    EXPECT_THAT(error.remedy(), testing::HasSubstr("--disk-memory"));
  }
}

}  // namespace
}  // namespace headroom::test
