#include "passes/offload_parameters.h"

#include "passes/device_windows.h"

namespace headroom {

namespace {

// An update writes the narrow copy of its weight without reading it.
bool is_shadow(const Node& node, ValueId value) {
  return node.op->name() == "adamw" && node.inputs.size() == 7 && node.inputs[6] == value;
}

}  // namespace

void offload_parameters(Graph& graph, Tier to, int64_t depth) {
  std::vector<bool> weights(graph.values.size(), false);
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    weights[id] = value.persistent && value.role == Role::parameter && value.type.shape.size() >= 2;
  }
  move_to(to, graph, weights);
  open_windows(graph, depth, is_shadow);
}

}  // namespace headroom
