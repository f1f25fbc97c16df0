#include "ir/rewrite.h"

#include <algorithm>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/graph_index.h"
#include "ir/row_slice.h"

namespace headroom {

void replace_uses(Graph& graph, ValueId from, ValueId to) {
  for (Node& node : graph.nodes) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  for (Region& region : graph.regions) std::replace(region.results.begin(), region.results.end(), from, to);
}

void replace_uses(Graph& graph, std::span<const ValueId> replacement) {
  const auto last = [&](ValueId id) {
    size_t steps = 0;
    while (id >= 0 && static_cast<size_t>(id) < replacement.size()) {
      const ValueId next = replacement[static_cast<size_t>(id)];
      if (next == kNone || next == id) break;
      HR_CHECK(++steps <= replacement.size(), "value %{} is replaced in a cycle", id);
      id = next;
    }
    return id;
  };
  for (Node& node : graph.nodes)
    for (ValueId& id : node.inputs) id = last(id);
  for (Region& region : graph.regions)
    for (ValueId& id : region.results) id = last(id);
}

NodeId make_node(Graph& graph, const Op& op, std::vector<ValueId> inputs, Attrs attrs, int32_t block, Stage stage,
                 Role role) {
  inputs.erase(std::remove(inputs.begin(), inputs.end(), kNone), inputs.end());
  std::vector<Type> types;
  types.reserve(inputs.size());
  for (ValueId id : inputs) types.push_back(graph.value(id).type);
  Node node;
  node.op = &op;
  for (Type& type : infer_call(op, types, attrs)) node.outputs.push_back(add_value(graph, std::move(type), role));
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.block = block;
  node.stage = stage;
  for (const Alias& alias : must_aliases(node))
    graph.value(node.outputs.at(static_cast<size_t>(alias.output))).role =
        graph.value(node.inputs.at(static_cast<size_t>(alias.input))).role;
  graph.nodes.push_back(std::move(node));
  return static_cast<NodeId>(graph.nodes.size() - 1);
}

void infer_again(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<Type> inputs;
  for (ValueId input : node.inputs) inputs.push_back(graph.value(input).type);
  const std::vector<Type> outputs = infer_call(*node.op, inputs, node.attrs);
  for (size_t i = 0; i < outputs.size(); ++i) graph.value(node.outputs[i]).type = outputs[i];
}

NodeId clone_node(Graph& graph, NodeId node_id, Stage stage) {
  Node copy = graph.node(node_id);
  HR_CHECK(!is_loop(copy), "node {} is a loop and cannot be copied alone", node_id);
  for (ValueId& id : copy.outputs) {
    const Value source = graph.value(id);
    id = add_value(graph, source.type, source.role);
  }
  copy.stage = stage;
  graph.nodes.push_back(std::move(copy));
  return static_cast<NodeId>(graph.nodes.size() - 1);
}

void insert_before(Graph& graph, RegionId region, int32_t position, std::span<const NodeId> nodes) {
  std::vector<NodeId>& list = graph.region(region).nodes;
  HR_CHECK(position >= 0 && static_cast<size_t>(position) <= list.size(), "position {} of a region with {} nodes",
           position, list.size());
  list.insert(list.begin() + position, nodes.begin(), nodes.end());
}

void insert_all(Graph& graph, RegionId region, std::vector<Insertion> insertions) {
  std::stable_sort(insertions.begin(), insertions.end(),
                   [](const Insertion& a, const Insertion& b) { return a.position < b.position; });
  const std::vector<NodeId>& old = graph.region(region).nodes;
  HR_CHECK(insertions.empty() ||
               (insertions.front().position >= 0 && static_cast<size_t>(insertions.back().position) <= old.size()),
           "insertions at {}..{} of a region with {} nodes", insertions.front().position, insertions.back().position,
           old.size());
  std::vector<NodeId> list;
  list.reserve(old.size() + insertions.size());
  size_t next = 0;
  for (size_t i = 0; i <= old.size(); ++i) {
    while (next < insertions.size() && static_cast<size_t>(insertions[next].position) == i)
      list.push_back(insertions[next++].node);
    if (i < old.size()) list.push_back(old[i]);
  }
  graph.region(region).nodes = std::move(list);
}

}  // namespace headroom
