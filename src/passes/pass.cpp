#include "passes/pass.h"

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
