// What a technique is to the rest of headroom: a record that feeds `--help`, the documentation, `plan --explain` and
// doctor, and one function that rewrites the graph. Every rewrite goes through run_pass.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "passes/pass_info.h"

namespace headroom {

// One step of the pipeline as it ran.
struct PassTrace {
  std::string_view name;
  double seconds = 0;
  int64_t nodes_before = 0;
  int64_t nodes_after = 0;
};

// Whether a node belongs to the backward pass, with what is computed again for it.
inline bool is_backward(const Node& node) { return node.stage == Stage::backward || node.stage == Stage::recompute; }

// Whether a region holds nodes of the backward pass: the body of a loop that trains.
bool trains(const Graph& graph, RegionId region);

// Blocks (layers) of a graph.
int64_t block_count(const Graph& graph);

// Runs `body` on the graph, times it and, with `verify`, checks every rule of the IR; a broken rule names this pass.
void run_pass(const PassInfo& info, Graph& graph, bool verify, std::vector<PassTrace>* trace,
              const std::function<void(Graph&)>& body);

}  // namespace headroom
