#include "passes/chunked_loss.h"

namespace headroom {

void set_loss_chunk(Graph& graph, int64_t rows) {
  for (Node& node : graph.nodes)
    if (node.op && node.op->cost_class() == CostClass::loss) node.attrs.set("chunk", rows);
}

}  // namespace headroom
