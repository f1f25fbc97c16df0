// The inner solver against optimal values (make_layer_mixes.py), and sums over layers against expanded graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "formats/json.h"
#include "planner/bounds.h"
#include "planner/candidates.h"
#include "planner/layer_kinds.h"
#include "planner/layer_mixes.h"
#include "planner/mixed_layers.h"
#include "planner/techniques/recompute.h"
#include "planning_case.h"

namespace headroom::test {
namespace {

struct Instance {
  std::vector<LayerFacts> options;
  std::vector<uint8_t> kinds;  // of layers
  int64_t budget = 0;
  double optimum = 0;
};

std::vector<Instance> golden_instances() {
  std::ifstream file(std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/planner/layer_mixes.jsonl");
  std::vector<Instance> out;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line);
    Instance instance;
    const Json& kinds = json.at("kinds");
    instance.options.resize(kinds[0][0].size());
    for (const char kind : json.at("pattern").get<std::string>()) {
      instance.kinds.push_back(static_cast<uint8_t>(kind - '0'));
      for (size_t i = 0; i < instance.options.size(); ++i) {
        const Json& figures = kinds[instance.kinds.back()];
        instance.options[i].saved.push_back(figures[0][i].get<int64_t>());
        instance.options[i].redone.push_back(figures[1][i].get<double>());
      }
    }
    instance.budget = json.at("budget").get<int64_t>();
    instance.optimum = json.at("optimum").get<double>();
    out.push_back(std::move(instance));
  }
  return out;
}

// How much slower the solver's mix is than the optimum.
double gap(const Instance& instance) {
  double best = 1e300;
  for (const LayerMix& mix : unbeaten_mixes(instance.options, instance.kinds))
    if (mix.saved <= instance.budget) best = std::min(best, mix.redone);
  return best / instance.optimum - 1;
}

TEST(LayerMixes, AreWithinOnePercentOfTheOptimum) {
  const std::vector<Instance> instances = golden_instances();
  ASSERT_GE(instances.size(), 200u);
  for (size_t i = 0; i < instances.size(); ++i) {
    EXPECT_GE(gap(instances[i]), -1e-12) << i;
    EXPECT_LE(gap(instances[i]), 0.01) << i;
  }
}

TEST(LayerMixes, GiveEachLayerItsOption) {
  const Instance instance = golden_instances().front();
  ASSERT_EQ(std::count(instance.kinds.begin(), instance.kinds.end(), 1), 29);
  for (const LayerMix& mix : unbeaten_mixes(instance.options, instance.kinds)) {
    const std::vector<uint8_t> options = mix.options(instance.kinds);
    ASSERT_EQ(options.size(), instance.kinds.size());
    int64_t saved = 0;
    for (size_t layer = 0; layer < options.size(); ++layer) saved += instance.options[options[layer]].saved[layer];
    EXPECT_EQ(saved, mix.saved);
  }
}

TEST(LayerMixes, OfManyLayersAreInUnits) {
  std::vector<LayerFacts> options(2);
  const std::vector<uint8_t> kinds(2001, 0);
  for (size_t i = 0; i < kinds.size(); ++i) {
    options[0].saved.push_back(10), options[0].redone.push_back(0);
    options[1].saved.push_back(1), options[1].redone.push_back(1);
  }
  const std::vector<LayerMix> mixes = unbeaten_mixes(options, kinds, keep_unit(2001));
  EXPECT_GT(mixes.size(), 50u);
  for (const LayerMix& mix : mixes)
    for (size_t i = 0; i + 1 < kMostRuns; ++i) EXPECT_EQ(mix.kinds[0].layers[i] % keep_unit(2001), 0);
}

// Compares the points of mixes with the graphs that they stand for.
void expect_bounds_of_graphs(const TrainOptions& options, const ModelFiles& model, size_t kinds) {
  const PlanRequest request = fixed_request(options, model);
  const std::vector<uint8_t> kinds_of_layers = layer_kinds(request.forward);
  EXPECT_EQ(1 + *std::max_element(kinds_of_layers.begin(), kinds_of_layers.end()), kinds);
  Bounder bounder(request);
  std::vector<LevelledFamilies> levelled;
  for (const CandidateFamily& family : families(request)) {
    if (!may_mix(request, family)) continue;
    LayerFacts facts;
    bounder.bounds(family.candidate, family.places, family.chunks, &facts);
    add_level(family, std::move(facts), levelled);
  }
  const std::vector<FrontierPoint> points = mixed_points(request, levelled, {});
  ASSERT_GT(points.size(), 20u);
  for (size_t i = 0; i < points.size(); i += points.size() / 20) {
    const FrontierPoint& point = points[i];
    SCOPED_TRACE(describe(point.candidate));
    const Bound bound = bounder.bound(point.candidate);
    const double bytes = static_cast<double>(run_peaks(bound.arenas, request).device);
    EXPECT_NEAR(static_cast<double>(point.peaks.device), bytes, 1e-3 * bytes);
    EXPECT_NEAR(point.step_seconds, bound.step_seconds, 1e-6 * bound.step_seconds);
  }
}

TEST(MixedLayers, AddUpToTheirGraphs) { expect_bounds_of_graphs(fixed_options(), small_model(), 1); }

TEST(MixedLayers, AddUpInBf16WithoutClipping) {
  TrainOptions options = fixed_options();
  options.techniques.precision = "bf16-mixed";
  options.techniques.max_grad_norm = 0;
  expect_bounds_of_graphs(options, open_model(published("bert-base-uncased")), 1);
}

TEST(MixedLayers, AddUpWithTwoKindsOfLayers) {
  TrainOptions options = fixed_options();
  options.data.max_seq_length = 2048;
  options.data.micro_batch_size = 1;
  expect_bounds_of_graphs(options, open_model(published("gemma3-1b-it")), 2);
}

// At 8192 tokens attention is the most expensive part to recompute.
TEST(MixedLayers, KeepAttentionWhereSequencesAreLong) {
  TrainOptions options = fixed_options();
  options.data.max_seq_length = 8192;
  options.techniques.pins["recompute-segments"] = "off";
  const ModelFiles model = open_model(published("smollm2-135m"));
  options.machine.memory = plan(options, model).plan.minimum_bytes * 6 / 5;
  const std::string keeps = plan(options, model).plan.choices.text("recompute");
  options.techniques.pins["recompute"] = keeps;
  const Plan pinned = plan(options, model).plan;
  EXPECT_EQ(pinned.choices.text("recompute"), keeps);
  EXPECT_TRUE(pinned.feasible);
  options.techniques.pins["recompute"] = "drop-attention";
  options.machine.memory = kPlenty;
  EXPECT_LT(pinned.step_seconds, plan(options, model).plan.step_seconds) << keeps;
}

}  // namespace
}  // namespace headroom::test
