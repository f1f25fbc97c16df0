#include "passes/chunked_loss.h"

namespace headroom {

void set_loss_chunk(Graph& graph, int64_t rows) {
  for (Node& node : graph.nodes)
    if (node.op && is_loss(node.op->cost_class())) node.attrs.set("chunk", rows);
}

}  // namespace headroom
