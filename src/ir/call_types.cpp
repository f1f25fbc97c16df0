#include "ir/call_types.h"

#include "ir/row_slice.h"

namespace headroom {
namespace {

std::span<const ConcreteType> fill(const Graph& graph, const std::vector<ValueId>& values, const Bindings& bindings,
                                   const std::optional<RowSlice>& slice, std::vector<ConcreteType>& types) {
  if (types.size() < values.size()) types.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const Type& type = graph.value(values[i]).type;
    concrete(type, bindings, types[i]);
    if (slice) select_rows(type, types[i], *slice);
  }
  return {types.data(), values.size()};
}

}  // namespace

OpCall CallTypes::of(const Graph& graph, const Node& node, const Bindings& bindings) {
  const std::optional<RowSlice> slice = row_slice(node.attrs);
  return {fill(graph, node.inputs, bindings, slice, inputs_), fill(graph, node.outputs, bindings, slice, outputs_),
          node.attrs};
}

}  // namespace headroom
