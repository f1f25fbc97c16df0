#include "passes/pass.h"

#include <algorithm>
#include <chrono>

#include "ir/verify.h"

namespace headroom {
namespace {

int64_t listed_nodes(const Graph& graph) {
  int64_t count = 0;
  for (const Region& region : graph.regions) count += static_cast<int64_t>(region.nodes.size());
  return count;
}

}  // namespace

bool trains(const Graph& graph, RegionId region) {
  const std::vector<NodeId>& nodes = graph.region(region).nodes;
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) { return graph.node(id).stage == Stage::backward; });
}

int64_t block_count(const Graph& graph) {
  int32_t most = kNone;
  for (const Node& node : graph.nodes) most = std::max(most, node.block);
  return most + 1;
}

void run_pass(const PassInfo& info, Graph& graph, bool verify, std::vector<PassTrace>* trace,
              const std::function<void(Graph&)>& body) {
  const auto begin = std::chrono::steady_clock::now();
  PassTrace row{info.name, 0, trace ? listed_nodes(graph) : 0, 0};
  body(graph);
  if (verify) verify_or_throw(graph, info.name);
  if (!trace) return;
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  row.nodes_after = listed_nodes(graph);
  trace->push_back(row);
}

}  // namespace headroom
