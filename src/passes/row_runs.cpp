#include "passes/row_runs.h"

#include <algorithm>
#include <unordered_set>

#include "ir/graph_index.h"

namespace headroom {
namespace {

bool is_forward(const Node& node) { return node.stage == Stage::forward; }

// Whether the node may lie between the nodes of a run; any other node ends it.
bool is_computed(const Node& node) {
  return !is_loop(node) && !node.op->has_effect() && !is_transfer(node.op->kind()) && node.stage != Stage::update &&
         node.stage != Stage::transfer;
}

class Gatherer {
 public:
  Gatherer(const Graph& graph, RegionId region)
      : graph_(graph), region_(region), rows_(graph), roots_(storage_roots(GraphIndex(graph))) {}

  RowOrder run() {
    for (NodeId id : graph_.region(region_).nodes) place(id);
    close();
    return std::move(out_);
  }

 private:
  const Node& node(NodeId id) const { return graph_.node(id); }

  void place(NodeId id) {
    const Node& now = node(id);
    const bool computed = is_computed(now), joins = computed && rows_.acts_on(now);
    if (!run_.empty()) {
      const Node& first = node(run_.front());
      const bool alike =
          computed && now.block == first.block && (is_forward(now) == is_forward(first) || now.block == kNone);
      if (!alike || (joins && (follows(now, behind_) || reads_sum(now)))) close();
    }
    if (joins)
      run_.push_back(id);
    else if (run_.empty())
      out_.nodes.push_back(id);
    else if (follows(now, run_) || follows(now, behind_))
      behind_.push_back(id);
    else
      out_.nodes.push_back(id);
  }

  // Whether `later` reads what one of the nodes makes, or overwrites what one of them reads.
  bool follows(const Node& later, const std::vector<NodeId>& nodes) const {
    std::vector<ValueId> overwritten;
    for (const Alias& alias : must_aliases(later))
      overwritten.push_back(root(later.inputs[static_cast<size_t>(alias.input)]));
    const auto contains = [](const std::vector<ValueId>& list, ValueId id) {
      return std::find(list.begin(), list.end(), id) != list.end();
    };
    return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
      const Node& earlier = node(id);
      return std::any_of(later.inputs.begin(), later.inputs.end(),
                         [&](ValueId input) { return contains(earlier.outputs, input); }) ||
             std::any_of(earlier.inputs.begin(), earlier.inputs.end(),
                         [&](ValueId input) { return contains(overwritten, root(input)); });
    });
  }

  // Whether the node reads a sum that the run is still adding to, and does not add to it itself.
  bool reads_sum(const Node& later) const {
    const std::vector<Alias> in_place = must_aliases(later);
    for (size_t i = 0; i < later.inputs.size(); ++i) {
      if (rows_.has(later.inputs[i])) continue;
      const bool adds = std::any_of(in_place.begin(), in_place.end(),
                                    [&](const Alias& alias) { return static_cast<size_t>(alias.input) == i; });
      if (!adds && std::any_of(run_.begin(), run_.end(), [&](NodeId id) {
            const std::vector<ValueId>& made = node(id).outputs;
            return std::find(made.begin(), made.end(), later.inputs[i]) != made.end();
          }))
        return true;
    }
    return false;
  }

  ValueId root(ValueId id) const { return roots_[static_cast<size_t>(id)]; }

  void close() {
    if (run_.empty()) return;
    const size_t begin = out_.nodes.size();
    out_.nodes.insert(out_.nodes.end(), run_.begin(), run_.end());
    out_.runs.emplace_back(begin, out_.nodes.size());
    out_.nodes.insert(out_.nodes.end(), behind_.begin(), behind_.end());
    run_.clear(), behind_.clear();
  }

  const Graph& graph_;
  RegionId region_;
  TokenRows rows_;
  std::vector<ValueId> roots_;
  RowOrder out_;
  std::vector<NodeId> run_, behind_;
};

}  // namespace

bool TokenRows::has(ValueId id) const {
  const Type& type = graph_.value(id).type;
  return batch_ != kNone && seq_ != kNone && type.shape.size() >= 2 && type.shape[0] == Dim::of_symbol(batch_) &&
         type.shape[1] == Dim::of_symbol(seq_) && type.storage.dense() && !type.shard && type.tier == Tier::device;
}

bool TokenRows::reads_next_labels(const Node& node) {
  return is_loss(node.op->cost_class()) && node.attrs.integer("shift", 1) != 0;
}

int64_t TokenRows::bytes(ValueId id) const {
  const Type& type = graph_.value(id).type;
  int64_t bytes = dtype_bytes(type.dtype);
  for (size_t i = 2; i < type.shape.size(); ++i) bytes *= type.shape[i].constant;
  return bytes;
}

bool TokenRows::acts_on(const Node& node) const {
  if (!node.op->by_rows() || reads_next_labels(node)) return false;
  if (std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return has(id); })) return false;
  const std::vector<Alias> in_place = must_aliases(node);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const bool sum = std::any_of(in_place.begin(), in_place.end(),
                                 [&](const Alias& alias) { return static_cast<size_t>(alias.output) == i; });
    if (has(node.outputs[i]) == sum) return false;
  }
  return true;
}

RowOrder gather_rows(const Graph& graph, RegionId region) { return Gatherer(graph, region).run(); }

}  // namespace headroom
