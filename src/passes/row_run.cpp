#include "passes/row_run.h"

#include <algorithm>

#include "ir/graph_index.h"

namespace headroom {

Readers::Readers(const Graph& graph) {
  const GraphIndex index(graph);
  for (NodeId id : index.order()) add(graph, id);
  for (RegionId region = 0; region < static_cast<RegionId>(graph.regions.size()); ++region)
    if (index.region(region).reachable())
      for (ValueId result : graph.region(region).results) of(result).readers.push_back(kNone);
}

Readers::Value& Readers::of(ValueId value) {
  const auto at = static_cast<size_t>(value);
  if (at >= values_.size()) values_.resize(at + 1);
  return values_[at];
}

void Readers::add(const Graph& graph, NodeId node) {
  for (ValueId input : graph.node(node).inputs)
    if (input != kNone) of(input).readers.push_back(node);
  for (ValueId output : graph.node(node).outputs) of(output).maker = node;
}

void Readers::replace(Graph& graph, NodeId node, size_t at, ValueId value) {
  ValueId& input = graph.node(node).inputs[at];
  std::vector<NodeId>& before = of(input).readers;
  before.erase(std::find(before.begin(), before.end(), node));
  input = value;
  of(value).readers.push_back(node);
}

bool Readers::outside(ValueId value, const std::set<NodeId>& nodes) const {
  if (static_cast<size_t>(value) >= values_.size()) return false;
  const std::vector<NodeId>& readers = values_[static_cast<size_t>(value)].readers;
  return std::any_of(readers.begin(), readers.end(), [&](NodeId reader) { return !nodes.contains(reader); });
}

NodeId Readers::maker(ValueId value) const {
  return static_cast<size_t>(value) < values_.size() ? values_[static_cast<size_t>(value)].maker : kNone;
}

RowRun::RowRun(const Graph& graph, std::vector<NodeId> nodes, const Readers& readers)
    : graph_(graph), rows_(graph), nodes_(std::move(nodes)) {
  const std::set<NodeId> members(nodes_.begin(), nodes_.end());
  for (size_t at = 0; at < nodes_.size(); ++at) {
    for (ValueId input : graph.node(nodes_[at]).inputs) {
      if (!rows_.has(input)) continue;
      const auto [life, is_new] = lives_.try_emplace(input);
      if (is_new) inputs_.push_back(input), life->second.ends = !readers.outside(input, members);
      life->second.last = at;
    }
    for (ValueId output : graph.node(nodes_[at]).outputs)
      if (rows_.has(output)) lives_[output] = {!readers.outside(output, members), at};
  }
  find_storages(readers);
}

void RowRun::find_storages(const Readers& readers) {
  const auto forward = [&](NodeId id) { return graph_.node(id).stage == Stage::forward; };
  const auto fits = [&](ValueId input, ValueId result) {
    const Value &from = graph_.value(input), &to = graph_.value(result);
    const NodeId maker = readers.maker(input);
    const bool alike = from.role == to.role && maker != kNone && forward(maker) == forward(nodes_.front());
    return lives_.at(input).ends && maker != kNone && from.type == to.type &&
           (alike || graph_.node(nodes_.front()).block == kNone);
  };
  std::vector<ValueId> free = inputs_;
  for (NodeId id : nodes_)
    for (ValueId output : graph_.node(id).outputs) {
      if (!rows_.has(output) || lives_.at(output).ends) continue;
      const auto storage = std::find_if(free.begin(), free.end(), [&](ValueId input) { return fits(input, output); });
      storages_[output] = storage == free.end() ? kNone : *storage;
      if (storage != free.end()) free.erase(storage);
    }
}

double RowRun::bytes_whole() const { return static_cast<double>(most_alive(false)); }

double RowRun::bytes_in_parts(int64_t parts) const {
  int64_t whole = 0;
  for (ValueId input : inputs_)
    if (lives_.at(input).ends) whole += rows_.bytes(input);
  for (const auto& [result, storage] : storages_)
    if (storage == kNone) whole += rows_.bytes(result);
  return static_cast<double>(whole) + static_cast<double>(most_alive(true)) / static_cast<double>(parts);
}

// In parts, an input's rows exist from their first reader on, and every value until its last reader in the run.
int64_t RowRun::most_alive(bool in_parts) const {
  int64_t alive = 0;
  std::set<ValueId> present;
  const auto come = [&](ValueId id) {
    if (present.insert(id).second) alive += rows_.bytes(id);
  };
  if (!in_parts)
    for (ValueId input : inputs_)
      if (lives_.at(input).ends) come(input);
  int64_t most = alive;
  for (size_t at = 0; at < nodes_.size(); ++at) {
    const Node& node = graph_.node(nodes_[at]);
    if (in_parts)
      for (ValueId input : node.inputs)
        if (rows_.has(input)) come(input);
    const auto goes = [&](ValueId id) {
      return present.contains(id) && lives_.at(id).last == at && (in_parts || lives_.at(id).ends);
    };
    // A result takes the storage of an input that ends here, if the op allows it.
    for (const Alias& alias : node.op->aliases(node.attrs, static_cast<int>(node.inputs.size()))) {
      const ValueId from = node.inputs[static_cast<size_t>(alias.input)],
                    to = node.outputs[static_cast<size_t>(alias.output)];
      if (alias.must || !goes(from) || present.contains(to) || rows_.bytes(from) != rows_.bytes(to)) continue;
      present.erase(from), present.insert(to);
    }
    for (ValueId output : node.outputs)
      if (rows_.has(output)) come(output);
    most = std::max(most, alive);
    for (const std::vector<ValueId>* list : {&node.inputs, &node.outputs})
      for (ValueId id : *list)
        if (rows_.has(id) && goes(id)) present.erase(id), alive -= rows_.bytes(id);
  }
  return most;
}

}  // namespace headroom
