#include "passes/batch_invariant.h"

namespace headroom {

int64_t make_batch_invariant(Graph& graph, RegionId region) {
  int64_t count = 0;
  for (const NodeId id : graph.region(region).nodes) {
    Node& node = graph.node(id);
    if (!node.op || node.op->product().part != ProductPart::output) continue;
    node.attrs.set("batch_invariant", int64_t{1});
    ++count;
  }
  return count;
}

}  // namespace headroom
