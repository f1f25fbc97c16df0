#include "ir/graph_index.h"

namespace headroom {

GraphIndex::GraphIndex(const Graph& graph)
    : graph_(&graph),
      definitions_(graph.values.size()),
      regions_(graph.regions.size()),
      nodes_(graph.nodes.size()),
      first_use_(graph.values.size() + 1, 0) {
  order_.reserve(graph.nodes.size());
  for (size_t i = 0; i < graph.programs.size(); ++i) walk(graph.programs[i].region, kNone, static_cast<int32_t>(i));
  collect_uses();
}

void GraphIndex::define(ValueId id, const Definition& definition) {
  Definition& known = definitions_[static_cast<size_t>(id)];
  if (known.region != kNone)
    redefined_.push_back(id);
  else
    known = definition;
}

void GraphIndex::walk(RegionId id, NodeId owner, int32_t program) {
  const Region& region = graph_->region(id);
  RegionPlace& place = regions_[static_cast<size_t>(id)];
  place = {owner, program, clock_++, -1};
  for (size_t i = 0; i < region.params.size(); ++i)
    define(region.params[i], {kNone, id, -1, static_cast<int32_t>(i), place.begin});
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    const NodeId node_id = region.nodes[i];
    const Node& node = graph_->node(node_id);
    NodePlace& at = nodes_[static_cast<size_t>(node_id)];
    at = {id, static_cast<int32_t>(i), clock_++, -1};
    order_.push_back(node_id);
    if (is_loop(node)) walk(node.body, node_id, program);
    at.done = is_loop(node) ? clock_++ : at.time;
    for (size_t k = 0; k < node.outputs.size(); ++k)
      define(node.outputs[k], {node_id, id, at.position, static_cast<int32_t>(k), at.done});
  }
  place.end = clock_++;
}

void GraphIndex::collect_uses() {
  // All operands in ascending time: those of nodes at their `time`, the results of a region at its `end`.
  std::vector<RegionId> ends(static_cast<size_t>(clock_), kNone);
  std::vector<NodeId> starts(static_cast<size_t>(clock_), kNone);
  for (size_t i = 0; i < regions_.size(); ++i)
    if (regions_[i].reachable()) ends[static_cast<size_t>(regions_[i].end)] = static_cast<RegionId>(i);
  for (NodeId id : order_) starts[static_cast<size_t>(node(id).time)] = id;
  const auto each = [&](const auto& visit) {
    for (int32_t tick = 0; tick < clock_; ++tick) {
      const NodeId node_id = starts[static_cast<size_t>(tick)];
      const RegionId region_id = ends[static_cast<size_t>(tick)];
      if (node_id == kNone && region_id == kNone) continue;
      Use use{node_id, region_id, 0, 0, tick};
      if (node_id != kNone) use.region = node(node_id).region;
      use.position =
          node_id != kNone ? node(node_id).position : static_cast<int32_t>(graph_->region(region_id).nodes.size());
      const std::vector<ValueId>& operands =
          node_id != kNone ? graph_->node(node_id).inputs : graph_->region(region_id).results;
      for (size_t i = 0; i < operands.size(); ++i) {
        use.operand = static_cast<int32_t>(i);
        visit(operands[i], use);
      }
    }
  };
  each([&](ValueId id, const Use&) { ++first_use_[static_cast<size_t>(id) + 1]; });
  for (size_t i = 1; i < first_use_.size(); ++i) first_use_[i] += first_use_[i - 1];
  uses_.resize(static_cast<size_t>(first_use_.back()));
  std::vector<int32_t> next(first_use_.begin(), first_use_.end() - 1);
  each([&](ValueId id, const Use& use) { uses_[static_cast<size_t>(next[static_cast<size_t>(id)]++)] = use; });
}

std::span<const Use> GraphIndex::uses(ValueId id) const {
  const auto begin = static_cast<size_t>(first_use_[static_cast<size_t>(id)]);
  const auto end = static_cast<size_t>(first_use_[static_cast<size_t>(id) + 1]);
  return {uses_.data() + begin, end - begin};
}

bool GraphIndex::encloses(RegionId outer, RegionId inner) const {
  if (outer == kNone || inner == kNone) return false;
  const RegionPlace& a = region(outer);
  const RegionPlace& b = region(inner);
  return a.reachable() && b.reachable() && a.begin <= b.begin && b.end <= a.end;
}

std::vector<Alias> must_aliases(const Node& node) {
  std::vector<Alias> out;
  if (is_loop(node)) {
    for (size_t i = 0; i < node.inputs.size(); ++i) out.push_back({static_cast<int>(i), static_cast<int>(i), true});
    return out;
  }
  for (const Alias& alias : node.op->aliases(node.attrs, static_cast<int>(node.inputs.size())))
    if (alias.must) out.push_back(alias);
  return out;
}

std::vector<ValueId> storage_roots(const GraphIndex& index) {
  const Graph& graph = index.graph();
  std::vector<ValueId> roots(graph.values.size());
  for (size_t i = 0; i < roots.size(); ++i) roots[i] = static_cast<ValueId>(i);
  // In ascending time, an input's root is known before its outputs, and a loop's inputs before its params.
  for (NodeId id : index.order()) {
    const Node& node = graph.node(id);
    for (const Alias& alias : must_aliases(node)) {
      const ValueId root = roots[static_cast<size_t>(node.inputs.at(static_cast<size_t>(alias.input)))];
      roots[static_cast<size_t>(node.outputs.at(static_cast<size_t>(alias.output)))] = root;
      if (is_loop(node))
        roots[static_cast<size_t>(graph.region(node.body).params.at(static_cast<size_t>(alias.input)))] = root;
    }
  }
  return roots;
}

}  // namespace headroom
