#include "ir/call_types.h"

namespace headroom {
namespace {

std::span<const ConcreteType> fill(const Graph& graph, const std::vector<ValueId>& values, const Bindings& bindings,
                                   std::vector<ConcreteType>& types) {
  if (types.size() < values.size()) types.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) concrete(graph.value(values[i]).type, bindings, types[i]);
  return {types.data(), values.size()};
}

}  // namespace

OpCall CallTypes::of(const Graph& graph, const Node& node, const Bindings& bindings) {
  return {fill(graph, node.inputs, bindings, inputs_), fill(graph, node.outputs, bindings, outputs_), node.attrs};
}

}  // namespace headroom
