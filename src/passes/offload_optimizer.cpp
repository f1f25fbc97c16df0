#include "passes/offload_optimizer.h"

#include <algorithm>

#include "passes/device_windows.h"
#include "passes/update_slices.h"

namespace headroom {

void offload_optimizer(Graph& graph, Tier to, int64_t depth) {
  std::vector<bool> states(graph.values.size(), false);
  for (const Region& region : graph.regions)
    for (const NodeId id : region.nodes) {
      const Node& node = graph.node(id);
      if (node.op->kind() != OpKind::update || graph.value(operand(node, "weight")).type.shape.size() < 2) continue;
      for (const ValueId input : node.inputs)
        if (graph.value(input).persistent && graph.value(input).role == Role::optimizer)
          states[static_cast<size_t>(input)] = true;
    }
  move_to(to, graph, states);
  slice_updates(graph, slice_bytes(graph));
  open_windows(graph, depth);
}

}  // namespace headroom
