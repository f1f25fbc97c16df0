#include "passes/offload_optimizer.h"

#include "passes/device_windows.h"

namespace headroom {

void offload_optimizer(Graph& graph, Tier to, int64_t depth) {
  std::vector<bool> states(graph.values.size(), false);
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    states[id] = value.persistent && value.role == Role::optimizer && value.type.shape.size() >= 2;
  }
  move_to(to, graph, states);
  open_windows(graph, depth);
}

}  // namespace headroom
