#include "passes/offload_parameters.h"

#include <algorithm>

#include "ir/graph_index.h"
#include "passes/device_windows.h"

namespace headroom {

namespace {

// The narrow copy of its weight, which an update writes without reading it.
bool is_shadow(const Node& node, ValueId value) {
  return node.op->kind() == OpKind::update && operand(node, "copy") == value;
}

bool is_matrix(const Value& value) {
  return value.persistent && value.role == Role::parameter && value.type.shape.size() >= 2;
}

// By value: the layer whose nodes read a weight, kNone if nodes elsewhere do too. Updates and nodes that fill a copy do
// not count: a weight that only they read belongs to the layer of its copy.
std::vector<int32_t> layers_of_weights(const Graph& graph) {
  constexpr int32_t kUnread = -2;
  std::vector<int32_t> layer(graph.values.size(), kUnread);
  const GraphIndex index(graph);
  const auto reads = [&](const auto& body) {
    for (NodeId id : index.order())
      for (ValueId input : graph.node(id).inputs)
        if (is_matrix(graph.value(input))) body(graph.node(id), layer[static_cast<size_t>(input)]);
  };
  const auto computes = [](const Node& node) { return node.stage != Stage::update && node.stage != Stage::transfer; };
  reads([&](const Node& node, int32_t& of) {
    if (computes(node)) of = of == kUnread || of == node.block ? node.block : kNone;
  });
  reads([&](const Node& node, int32_t& of) {
    if (of != kUnread || computes(node)) return;
    for (ValueId beside : node.inputs) of = std::max(of, layer[static_cast<size_t>(beside)]);
  });
  for (int32_t& of : layer) of = std::max(of, kNone);
  return layer;
}

// Selects `count` of `layers`, spread evenly and with the first one.
bool is_treated(int64_t layer, int64_t count, int64_t layers) { return layer * count % layers < count; }

}  // namespace

void offload_parameters(Graph& graph, Tier to, int64_t layers, int64_t depth) {
  const std::vector<int32_t> layer = layers_of_weights(graph);
  const int64_t all = layer.empty() ? 0 : 1 + *std::max_element(layer.begin(), layer.end());
  std::vector<bool> weights(graph.values.size(), false);
  for (size_t id = 0; id < graph.values.size(); ++id) {
    if (!is_matrix(graph.values[id])) continue;
    weights[id] = layers == kEveryLayer || (layer[id] != kNone && is_treated(layer[id], std::min(layers, all), all));
  }
  move_to(to, graph, weights);
  open_windows(graph, depth, is_shadow);
}

}  // namespace headroom
