// remove_dead_nodes(): marks backward from the effects what is needed, then drops the rest.
#include <algorithm>

#include "ir/graph_index.h"
#include "ir/rewrite.h"

namespace headroom {
namespace {

// Liveness of nodes and values. A loop-carried value is one slot: if its output or its param is needed, so are its
// input and its result.
class Marker {
 public:
  explicit Marker(const Graph& graph)
      : graph_(graph), index_(graph), nodes_(graph.nodes.size(), 0), values_(graph.values.size(), 0) {}

  void run() {
    const std::vector<ValueId> roots = storage_roots(index_);
    for (NodeId id : index_.order())  // a loop has the effects of its body
      if (!is_loop(graph_.node(id)) && graph_.node(id).op->has_effect()) mark_node(id);
    for (const Program& program : graph_.programs)
      for (ValueId id : graph_.region(program.region).results) mark_value(id);
    for (NodeId id : index_.order()) mark_persistent_update(id, roots);
    while (!pending_.empty()) {
      const ValueId id = pending_.back();
      pending_.pop_back();
      follow(id);
    }
  }

  bool live(NodeId id) const { return nodes_[static_cast<size_t>(id)] != 0; }
  bool live_value(ValueId id) const { return values_[static_cast<size_t>(id)] != 0; }
  const GraphIndex& index() const { return index_; }

 private:
  // Outputs in the storage of a persistent value are needed, except those of a loop that returns its param unchanged.
  void mark_persistent_update(NodeId id, const std::vector<ValueId>& roots) {
    const Node& node = graph_.node(id);
    for (const Alias& alias : must_aliases(node)) {
      const ValueId output = node.outputs[static_cast<size_t>(alias.output)];
      if (!graph_.value(roots[static_cast<size_t>(output)]).persistent) continue;
      if (is_loop(node)) {
        const Region& body = graph_.region(node.body);
        if (body.results[static_cast<size_t>(alias.output)] == body.params[static_cast<size_t>(alias.input)]) continue;
      }
      mark_value(output);
    }
  }

  void mark_value(ValueId id) {
    char& mark = values_[static_cast<size_t>(id)];
    if (mark) return;
    mark = 1;
    pending_.push_back(id);
  }

  // The node runs, so the loops around it run and what it reads is needed (for a loop: slot by slot, see follow()).
  void mark_node(NodeId id) {
    while (id != kNone && !live(id)) {
      nodes_[static_cast<size_t>(id)] = 1;
      const Node& node = graph_.node(id);
      if (!is_loop(node))
        for (ValueId input : node.inputs) mark_value(input);
      id = index_.region(index_.node(id).region).owner;
    }
  }

  void mark_slot(NodeId loop, size_t slot) {
    mark_node(loop);
    const Node& node = graph_.node(loop);
    const Region& body = graph_.region(node.body);
    mark_value(node.inputs[slot]);
    mark_value(node.outputs[slot]);
    mark_value(body.params[slot]);
    mark_value(body.results[slot]);
  }

  void follow(ValueId id) {
    const Definition& definition = index_.definition(id);
    if (definition.region == kNone) return;
    const auto slot = static_cast<size_t>(definition.index);
    if (definition.node == kNone) {
      const NodeId owner = index_.region(definition.region).owner;
      if (owner != kNone) mark_slot(owner, slot);
    } else if (is_loop(graph_.node(definition.node))) {
      mark_slot(definition.node, slot);
    } else {
      mark_node(definition.node);
    }
  }

  const Graph& graph_;
  GraphIndex index_;
  std::vector<char> nodes_;
  std::vector<char> values_;
  std::vector<ValueId> pending_;
};

template <typename Keep>
void keep_only(std::vector<int32_t>& list, const Keep& keep) {
  size_t kept = 0;
  for (size_t i = 0; i < list.size(); ++i)
    if (keep(i)) list[kept++] = list[i];
  list.resize(kept);
}

void drop_dead_slots(Graph& graph, Node& loop, const Marker& marker) {
  Region& body = graph.region(loop.body);
  std::vector<char> keep;
  for (ValueId output : loop.outputs) keep.push_back(marker.live_value(output));
  const auto kept = [&](size_t i) { return keep[i] != 0; };
  keep_only(loop.inputs, kept);
  keep_only(loop.outputs, kept);
  keep_only(body.params, kept);
  keep_only(body.results, kept);
}

}  // namespace

int remove_dead_nodes(Graph& graph) {
  Marker marker(graph);
  marker.run();
  size_t dropped = 0;
  for (size_t i = 0; i < graph.regions.size(); ++i) {
    if (!marker.index().region(static_cast<RegionId>(i)).reachable()) continue;
    std::vector<NodeId>& list = graph.regions[i].nodes;
    const size_t before = list.size();
    list.erase(std::remove_if(list.begin(), list.end(), [&](NodeId id) { return !marker.live(id); }), list.end());
    dropped += before - list.size();
    for (NodeId id : list)
      if (is_loop(graph.node(id))) drop_dead_slots(graph, graph.node(id), marker);
  }
  return static_cast<int>(dropped);
}

}  // namespace headroom
