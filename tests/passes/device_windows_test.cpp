// Windows on the device: their order, and the bytes per step of prefetch depth.
#include "passes/device_windows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/verify.h"
#include "memory/arenas.h"
#include "ops/registry.h"
#include "passes/offload_optimizer.h"
#include "passes/offload_parameters.h"

namespace headroom {
namespace {

constexpr int64_t kElements = 64 * 64;

// `count` updates of matrices of one size.
Graph updates(int count) {
  std::string values = "  persistent %1: f32[16] data \"hyper\"\n  persistent %2: f32[1] workspace \"clip\"\n", nodes;
  for (int i = 0; i < count; ++i) {
    const int base = 10 + 4 * i, made = 1000 + 3 * i;
    const char* const names[] = {"parameter", "gradient", "optimizer", "optimizer"};
    for (int k = 0; k < 4; ++k)
      values += fmt::format("  persistent %{}: f32[64, 64] {} \"{}.{}\"\n", base + k, names[k], i, k);
    nodes += fmt::format(
        "    %{}: f32[64, 64] parameter, %{}: f32[64, 64] optimizer, %{}: f32[64, 64] optimizer = adamw(%{}, %{}, %{}, "
        "%{}, %1, %2) {{beta1=0.9, beta2=0.999, decay=0, eps=1e-08}} @update\n",
        made, made + 1, made + 2, base, base + 1, base + 2, base + 3);
  }
  return parse_graph("graph \"g\" {\n" + values + "  program train_step {\n" + nodes + "  }\n}\n", "updates", find_op);
}

// Peaks of the arenas of the updates with the pass at a depth.
TierBytes arenas(int count, void (*pass)(Graph&, Tier, int64_t), int64_t depth, Tier to = Tier::host) {
  Graph graph = updates(count);
  pass(graph, to, depth);
  verify_or_throw(graph, "the pass");
  return assign_arenas(analyze_liveness(graph, graph.bounds(), {})).peaks;
}

TEST(Prefetch, TwoMoreWindowsWithEachStepOfDepth) {
  constexpr int64_t kStates = 2 * 4 * kElements;  // of one matrix
  constexpr int kUpdates = 12;
  const TierBytes plain = assign_arenas(analyze_liveness(updates(kUpdates), {}, {})).peaks;
  const TierBytes none = arenas(kUpdates, offload_optimizer, 0);
  EXPECT_EQ(none.host, kUpdates * kStates);
  EXPECT_NEAR(static_cast<double>(none.device), static_cast<double>(plain.device - (kUpdates - 1) * kStates), 1024);
  for (int64_t depth = 1; depth <= 4; ++depth) {
    const TierBytes ahead = arenas(kUpdates, offload_optimizer, depth);
    EXPECT_EQ(ahead.host, none.host);
    // The windows, and tokens of 64 bytes for the copies in flight.
    const int64_t windows = ahead.device - none.device - depth * 2 * kStates;
    EXPECT_GE(windows, 0) << depth;
    EXPECT_LE(windows, depth * 8 * 64) << depth;
  }
}

TEST(Prefetch, DeeperThanTheRegionIsTheWholeRegion) {
  EXPECT_EQ(arenas(4, offload_optimizer, 4), arenas(4, offload_optimizer, 64));
}

TEST(Windows, WeightAndStatesOfAnUpdateShareItsPlace) {
  Graph graph = updates(3);
  offload_optimizer(graph, Tier::host, 1);
  offload_parameters(graph, Tier::host, kEveryLayer, 1);
  verify_or_throw(graph, "both");
  const TierBytes peaks = assign_arenas(analyze_liveness(graph, graph.bounds(), {})).peaks;
  EXPECT_EQ(peaks.host, 3 * 3 * 4 * kElements);
}

TEST(Windows, UnitsAreRunsOfABlockAndADirection) {
  const Graph graph = parse_graph(R"(graph "g" {
  persistent %0: f32[4] data "x"
  program p {
    %1: f32[4] = add(%0, %0)
    %2: f32[4] = add(%1, %0) @0.forward
    %3: f32[4] = add(%2, %0) @0.forward
    %4: f32[4] = add(%3, %0) @1.forward
    %5: f32[4] = add(%4, %0) @1.recompute
    %6: f32[4] = add(%5, %0) @1.backward
    %7: f32[4] = add(%6, %0) @update
    %8: f32[4] = add(%7, %0) @update
    yield %8
  }
})",
                                  "g", find_op);
  EXPECT_EQ(units_of(graph, graph.programs[0].region), (std::vector<int32_t>{0, 1, 1, 2, 3, 3, 4, 5}));
}

}  // namespace
}  // namespace headroom
