#include "passes/norm_sums.h"

#include <algorithm>

#include "ir/graph_index.h"

namespace headroom {
namespace {

// A norm whose attribute lets it add a residual, and that adds none yet.
bool takes_residual(const Node& node) {
  if (!node.op || node.op->kind() != OpKind::norm || node.attrs.integer("residual") != 0) return false;
  Attrs attrs = node.attrs;
  attrs.set("residual", int64_t{1});
  return node.op->operands(attrs, node.inputs.size() + 1).back() == "residual";
}

// The value that the sum adds to the norm's result, if only the sum reads that; else kNone.
ValueId residual_of(const GraphIndex& index, const Node& norm, const Node& sum) {
  if (!takes_residual(norm) || !sum.op || sum.op->kind() != OpKind::sum) return kNone;
  if (norm.block != sum.block || norm.stage != sum.stage) return kNone;
  const ValueId z = result_of(norm), a = operand(sum, "a"), b = operand(sum, "b");
  if ((a == z) == (b == z) || index.uses(z).size() != 1) return kNone;
  return a == z ? b : a;
}

}  // namespace

int64_t join_norm_sums(Graph& graph, const DeviceFacts& facts) {
  if (facts.is_cpu()) return 0;
  const GraphIndex index(graph);
  int64_t count = 0;
  for (Region& region : graph.regions) {
    std::vector<NodeId> joined;
    for (size_t i = 1; i < region.nodes.size(); ++i) {
      const Node norm = graph.node(region.nodes[i - 1]);
      Node& sum = graph.node(region.nodes[i]);
      const ValueId residual = residual_of(index, norm, sum);
      if (residual == kNone) continue;
      sum.op = norm.op;
      sum.attrs = norm.attrs;
      sum.attrs.set("residual", int64_t{1});
      sum.inputs = norm.inputs;
      sum.inputs.push_back(residual);
      joined.push_back(region.nodes[i - 1]);
    }
    count += static_cast<int64_t>(joined.size());
    std::erase_if(region.nodes, [&](NodeId id) { return std::find(joined.begin(), joined.end(), id) != joined.end(); });
  }
  return count;
}

}  // namespace headroom
