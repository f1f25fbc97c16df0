// Budgets: more memory is never slower, one byte less than the minimum is refused, and plans are reproducible byte by
// byte.
#include <gtest/gtest.h>

#include "planner/alternatives.h"
#include "planner/explain.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

// 50 budgets from the least to plenty.
void expect_monotone(const ModelFiles& model, TrainOptions options) {
  const SearchResult plenty = plan(options, model);
  ASSERT_TRUE(plenty.plan.feasible);
  const int64_t least = plenty.plan.minimum_bytes, most = plenty.plan.peak_bytes + (int64_t{1} << 20);
  ASSERT_LT(least, most);
  double seconds = 1e300;
  for (int64_t i = 0; i < 50; ++i) {
    options.machine.memory = least + (most - least) * i / 49;
    const Plan chosen = plan(options, model).plan;
    ASSERT_TRUE(chosen.feasible) << options.machine.memory;
    EXPECT_LE(chosen.peak_bytes, options.machine.memory);
    EXPECT_LE(chosen.step_seconds, seconds) << "at " << options.machine.memory;
    EXPECT_EQ(chosen.minimum_bytes, least) << "at " << options.machine.memory;
    EXPECT_EQ(chosen.peak_bytes, process_peak(chosen.arena_bytes, chosen.process, chosen.facts));
    seconds = chosen.step_seconds;
  }
  EXPECT_EQ(seconds, plenty.plan.step_seconds);
}

TEST(Budget, MoreIsNeverSlowerOnASmallModel) { expect_monotone(small_model(), fixed_options()); }

TEST(Budget, MoreIsNeverSlowerInBf16WithoutClipping) {
  TrainOptions options = fixed_options();
  options.techniques.precision = "bf16-mixed";
  options.techniques.max_grad_norm = 0;
  expect_monotone(small_model(), options);
}

TEST(Budget, MoreIsNeverSlowerOnSmolLm) { expect_monotone(open_model(published("smollm2-135m")), fixed_options()); }

TEST(Budget, OneByteBelowTheMinimumIsShortByOne) {
  const ModelFiles model = small_model();
  TrainOptions options = fixed_options();
  const int64_t least = plan(options, model).plan.minimum_bytes;
  options.machine.memory = least;
  const Plan fits = plan(options, model).plan;
  EXPECT_TRUE(fits.feasible);
  EXPECT_EQ(fits.peak_bytes, least);
  options.machine.memory = least - 1;
  const PlanRequest request = fixed_request(options, model);
  SearchResult refused = search_training_plan(request);
  EXPECT_FALSE(refused.plan.feasible);
  EXPECT_TRUE(refused.plan.programs.empty());
  EXPECT_EQ(refused.plan.minimum_bytes, least);
  const Json json = Json::parse(plan_json(refused.plan));
  EXPECT_EQ(json.at("feasible"), false);
  EXPECT_EQ(json.at("shortfall_bytes"), 1);
  find_alternatives(request, {}, refused.plan);
  EXPECT_FALSE(refused.plan.cheapest_fix.empty());
  const std::string text = explain(request, refused);
  EXPECT_NE(text.find("short of 1 bytes"), std::string::npos) << text;
}

TEST(Budget, KindsOfTechniquesStandInOneColumn) {
  const ModelFiles model = small_model();
  const PlanRequest request = fixed_request(fixed_options(), model);
  const SearchResult found = search_training_plan(request);
  const std::string text = explain(request, found);
  for (const TechniqueReport& technique : found.plan.techniques)
    EXPECT_NE(text.find(fmt::format("\n  {:<20} {}", technique.name, technique.kind)), std::string::npos) << text;
}

TEST(Budget, RepeatedPlansAreTheSameBytes) {
  const ModelFiles model = small_model();
  TrainOptions options = fixed_options();
  const Plan plenty = plan(options, model).plan;
  options.machine.memory = (plenty.minimum_bytes + plenty.peak_bytes) / 2;
  const Plan first = plan(options, model).plan, second = plan(options, small_model()).plan;
  EXPECT_EQ(plan_text(first), plan_text(second));
  EXPECT_EQ(plan_json(first), plan_json(second));
}

TEST(Budget, FixedArithmeticDoesNotDependOnIt) {
  const ModelFiles model = small_model();
  TrainOptions options = fixed_options();
  options.techniques.arithmetic = "fixed";
  const Plan plenty = plan(options, model).plan;
  ASSERT_LT(plenty.minimum_bytes, plenty.peak_bytes);
  for (int64_t i = 0; i < 10; ++i) {
    options.machine.memory = plenty.minimum_bytes + (plenty.peak_bytes - plenty.minimum_bytes) * i / 9;
    const Plan chosen = plan(options, model).plan;
    ASSERT_TRUE(chosen.feasible);
    EXPECT_EQ(chosen.choices.micro_batch, plenty.choices.micro_batch);
    EXPECT_EQ(chosen.choices.integer("loss_chunk_rows"), plenty.choices.integer("loss_chunk_rows"));
  }
}

TEST(Budget, PartsOfThePlanSumUp) {
  const Plan chosen = plan(fixed_options(), small_model()).plan;
  const Breakdown& b = chosen.breakdown;
  EXPECT_EQ(b.weights + b.gradients + b.optimizer + b.activations + b.workspace + b.data + b.alignment,
            chosen.arena_bytes);
  EXPECT_EQ(chosen.arena_bytes + chosen.process.total(), chosen.peak_bytes);
  EXPECT_GE(b.alignment, 0);
  EXPECT_GE(chosen.arena_bytes, chosen.lower_bound_bytes);
  EXPECT_EQ(b.weights, 4 * chosen.parameters);
  EXPECT_EQ(b.optimizer, 8 * chosen.parameters);
  for (const PlanProgram& program : chosen.programs)
    EXPECT_LE(program.peaks.device, chosen.arena_bytes) << program.name;
}

TEST(Budget, PageTablesAreChargedToTheHostOnly) {
  const ProcessBytes process{10 << 20, 0, 0, 0, 0, 0};
  const int64_t arena = int64_t{1} << 30;
  DeviceFacts facts;
  facts.device = "cpu";
  EXPECT_EQ(with_page_tables(process, arena, facts).page_tables, (arena + (10 << 20)) / 512);
  EXPECT_EQ(process_peak(arena, process, facts), arena + (10 << 20) + (arena + (10 << 20)) / 512);
  facts.device = "cuda";
  EXPECT_EQ(with_page_tables(process, arena, facts).page_tables, 0);
  EXPECT_EQ(process_peak(arena, process, facts), arena + (10 << 20));
}

}  // namespace
}  // namespace headroom::test
