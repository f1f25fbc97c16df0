// The timeline computed from a plan's instructions agrees with the offsets of the planner's own liveness analysis.
#include "plan/step_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "small_run.h"

namespace headroom {
namespace {

TrainOptions options_of(int64_t memory) {
  TrainOptions options = small_options(memory);
  // With fewer rows, or with segments, the step takes less than loading.
  options.techniques.pins = {{"chunked-loss", "64"}, {"recompute-segments", "off"}};
  return options;
}

Plan plan_of(const TrainOptions& options, int layers = 6) {
  return search_training_plan(training_request(options, small_model(layers))).plan;
}

int64_t sum(const ClassBytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

ClassBytes classes_of(const Breakdown& b) {
  return {b.weights, b.gradients, b.optimizer, b.activations, b.workspace, b.data};
}

ClassBytes sums_of(const std::vector<TensorGroup>& groups) {
  ClassBytes sums{};
  for (const TensorGroup& group : groups) sums[static_cast<size_t>(group.kind)] += group.bytes;
  return sums;
}

void expect_the_planners_figures(const Plan& plan) {
  ASSERT_TRUE(plan.feasible);
  const StepMemory memory = step_memory(plan, "train_step");
  EXPECT_EQ(sum(memory.peak), plan.lower_bound_bytes);
  const ClassBytes expected = classes_of(plan.breakdown);
  EXPECT_EQ(sums_of(plan.peak_tensors), expected);
  for (size_t kind = 0; kind + 1 < kMemoryClasses; ++kind)
    EXPECT_EQ(memory.peak[kind], expected[kind]) << memory_class_name(static_cast<MemoryClass>(kind));
  int64_t highest = 0;
  for (const TimelinePoint& point : memory.points) highest = std::max(highest, sum(point.bytes));
  EXPECT_EQ(highest, sum(memory.peak));
  // Every byte of the peak is attributed, by group and by layer.
  const ClassBytes groups = sums_of(memory.groups);
  ClassBytes layers{};
  for (const LayerBytes& layer : memory.layers)
    for (size_t kind = 0; kind < kMemoryClasses; ++kind) layers[kind] += layer.bytes[kind];
  for (size_t kind = 0; kind + 1 < kMemoryClasses; ++kind) {
    EXPECT_EQ(groups[kind], memory.peak[kind]);
    EXPECT_EQ(layers[kind], memory.peak[kind]);
  }
}

TEST(StepMemory, AgreesWithThePlan) {
  TrainOptions options = options_of(int64_t{1} << 40);
  const Plan plenty = plan_of(options);
  expect_the_planners_figures(plenty);
  for (const int64_t budget : {plenty.minimum_bytes, (plenty.minimum_bytes + plenty.peak_bytes) / 2}) {
    options.machine.memory = budget;
    expect_the_planners_figures(plan_of(options));
  }
}

// Loading stages weights in a buffer that the step does not have, without activations.
TEST(StepMemory, ThePeakMayLieInAnotherProgram) {
  TrainOptions options = options_of(int64_t{1} << 20);
  options.techniques.pins = {{"chunked-loss", "16"}};
  options.machine.memory = plan_of(options).minimum_bytes;
  const Plan plan = plan_of(options);
  ASSERT_LT(sum(step_memory(plan, "train_step").peak), plan.lower_bound_bytes);
  EXPECT_EQ(sums_of(plan.peak_tensors), classes_of(plan.breakdown));
}

TEST(StepMemory, AgreesUnderTechniques) {
  for (const char* precision : {"32-true", "bf16-mixed"})
    for (const double norm : {0.0, 1.0}) {
      TrainOptions options = options_of(int64_t{1} << 40);
      options.techniques.precision = precision;
      options.techniques.max_grad_norm = norm;
      SCOPED_TRACE(std::string(precision) + (norm > 0 ? ", clipped" : ", fused optimizer"));
      expect_the_planners_figures(plan_of(options));
      TrainOptions segmented = options;
      segmented.techniques.pins = {{"recompute", "on"}, {"recompute-segments", "on"}, {"micro-batch", "8"}};
      expect_the_planners_figures(plan_of(segmented));
      options.machine.memory = plan_of(options).minimum_bytes;
      expect_the_planners_figures(plan_of(options));
    }
}

TEST(StepMemory, NamesWhatIsAlive) {
  const Plan plan = plan_of(options_of(int64_t{1} << 40));
  const StepMemory memory = step_memory(plan, "train_step");
  const auto has = [&](std::string_view name, MemoryClass kind, int64_t count) {
    return std::any_of(memory.groups.begin(), memory.groups.end(), [&](const TensorGroup& group) {
      return group.name == name && group.kind == kind && group.count == count;
    });
  };
  EXPECT_TRUE(has("model.layers.*.mlp.up_proj.weight", MemoryClass::weights, 6));
  EXPECT_TRUE(has("model.layers.*.mlp.up_proj.weight.exp_avg_sq", MemoryClass::optimizer, 6));
  EXPECT_TRUE(has("gradient of model.layers.*.mlp.up_proj.weight", MemoryClass::gradients, 6));
  EXPECT_TRUE(has("linear(model.layers.*.mlp.up_proj)", MemoryClass::activations, 6));
  for (const TensorGroup& group : memory.groups)
    if (group.name == "model.layers.*.mlp.up_proj.weight") {
      EXPECT_EQ(group.first_layer, 0);
      EXPECT_EQ(group.last_layer, 5);
      EXPECT_EQ(group.bytes, int64_t{6} * 96 * 256 * 4);
    }
}

// What is on a disk is named in its windows, and counts as what it is.
TEST(StepMemory, NamesWindows) {
  TrainOptions options = options_of(int64_t{1} << 40);
  options.machine.disk_memory = int64_t{1} << 30;
  options.techniques.pins = {{"recompute", "on"},
                             {"offload-optimizer", "on"},
                             {"offload-gradients", "on"},
                             {"offload-activations", "on"},
                             {"offload-parameters", "on"}};
  const Plan plan = plan_of(options);
  const StepMemory memory = step_memory(plan, "train_step");
  EXPECT_EQ(sum(memory.peak), plan.lower_bound_bytes);
  // Tokens of copies, 4 bytes each, count as workspace here and as what is copied there.
  const ClassBytes expected = classes_of(plan.breakdown);
  for (size_t kind = 0; kind + 1 < kMemoryClasses; ++kind)
    EXPECT_NEAR(memory.peak[kind], expected[kind], 256) << memory_class_name(static_cast<MemoryClass>(kind));
  std::map<std::string, MemoryClass> found;
  for (const StorageSpan& span : storage_spans(plan, *plan.program("train_step"))) found[span.name] = span.kind;
  const std::string weight = "model.layers.0.mlp.up_proj.weight";
  EXPECT_EQ(found.at("window of " + weight), MemoryClass::weights);
  EXPECT_EQ(found.at("window of " + weight + ".exp_avg_sq"), MemoryClass::optimizer);
  EXPECT_EQ(found.at("window of the gradient of " + weight), MemoryClass::gradients);
  EXPECT_EQ(found.at("window of activations"), MemoryClass::activations);
  EXPECT_FALSE(found.contains("copy_start"));
}

TEST(StepMemory, NothingOverlaps) {
  const Plan plan = plan_of(options_of(plan_of(options_of(int64_t{1} << 40)).minimum_bytes));
  const std::vector<StorageSpan> spans = storage_spans(plan, *plan.program("train_step"));
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_LE(spans[i].offset + spans[i].bytes, plan.arena_bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together = spans[i].begin < spans[j].end && spans[j].begin < spans[i].end;
      const bool meet =
          spans[i].offset < spans[j].offset + spans[j].bytes && spans[j].offset < spans[i].offset + spans[i].bytes;
      ASSERT_FALSE(together && meet) << spans[i].name << " and " << spans[j].name;
    }
  }
}

TEST(StepMemory, TheFileDoesNotGrowWithTheModel) {
  const Plan plan = plan_of(options_of(int64_t{1} << 40), 120);
  std::vector<BudgetPoint> frontier(64, {plan.peak_bytes, true, 0.5, std::string(200, 'x')});
  const StepMemory memory = step_memory(plan, "train_step");
  EXPECT_EQ(memory.points.size(), static_cast<size_t>(kTimelinePoints));
  const std::string text = memory_json(plan, memory, frontier);
  EXPECT_LT(text.size(), size_t{160} << 10);
  const Json json = parse_json(text, "memory.json");
  EXPECT_EQ(json.at("points").size(), static_cast<size_t>(kTimelinePoints));
  EXPECT_EQ(json.at("frontier").size(), 64u);
  EXPECT_EQ(json.at("layers").size(), 121u);
}

TEST(StepMemory, StretchesCoverTheProgram) {
  for (const int32_t count : {1, 2, 479, 480, 481, 1000, 123457}) {
    EXPECT_EQ(stretch_begin(0, count), 0);
    EXPECT_EQ(stretch_begin(timeline_points(count), count), count);
    for (int32_t point = 0; point < timeline_points(count); ++point)
      ASSERT_LT(stretch_begin(point, count), stretch_begin(point + 1, count));
  }
}

}  // namespace
}  // namespace headroom
