#include "passes/offload_activations.h"

#include <algorithm>
#include <map>

#include "ir/rewrite.h"
#include "ops/registry.h"
#include "passes/device_windows.h"

namespace headroom {
namespace {

constexpr int64_t kSmall = 16;  // values below this part of the largest stay

// Whether a value is small does not depend on the micro-batch: sizes are those of one sequence.
Bindings of_one_sequence(const Graph& graph) {
  Bindings bindings = graph.bounds();
  if (const SymbolId batch = graph.find_symbol("batch"); batch != kNone) bindings[static_cast<size_t>(batch)] = 1;
  return bindings;
}

class BodyOffloader {
 public:
  BodyOffloader(Graph& graph, RegionId region, Tier to, int64_t blocks, int64_t depth)
      : graph_(graph), region_(region), to_(to), blocks_(blocks), depth_(depth), bounds_(of_one_sequence(graph)) {}

  void run() {
    const std::vector<NodeId> nodes = graph_.region(region_).nodes;
    survey(nodes);
    int64_t largest = 0;
    for (const auto& [id, saved] : saved_)
      if (treated(saved)) largest = std::max(largest, bytes(id));
    const std::vector<int32_t> units = units_of(graph_, region_);
    for (const auto& [id, saved] : saved_)
      if (treated(saved) && bytes(id) * kSmall >= largest) store(id, saved, units);
    std::vector<Insertion> all = std::move(starts_);
    all.insert(all.end(), waits_.begin(), waits_.end());
    for (NodeId node : nodes)
      if (is_backward(graph_.node(node)))
        for (ValueId& input : graph_.node(node).inputs)
          if (const auto at = moved_.find(input); at != moved_.end()) input = at->second;
    insert_all(graph_, region_, std::move(all));
  }

 private:
  // A forward value that backward nodes read.
  struct Saved {
    int32_t made = 0;       // position of its node
    int32_t needed = -1;    // position of the first backward node that reads it
    int32_t block = kNone;  // the first block whose backward nodes read it; kNone when nodes outside blocks do
  };

  int64_t bytes(ValueId id) const { return storage_bytes(concrete(graph_.value(id).type, bounds_)); }
  bool treated(const Saved& saved) const { return saved.needed >= 0 && saved.block >= 0 && saved.block < blocks_; }

  void survey(const std::vector<NodeId>& nodes) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Node& node = graph_.node(nodes[i]);
      const int32_t position = static_cast<int32_t>(i);
      for (ValueId output : node.outputs)
        if (node.stage == Stage::forward && graph_.value(output).role == Role::activation &&
            graph_.value(output).type.tier == Tier::device)
          saved_[output].made = position;
      if (!is_backward(node)) continue;
      for (ValueId input : node.inputs) {
        const auto saved = saved_.find(input);
        if (saved == saved_.end()) continue;
        Saved& s = saved->second;
        s.block = s.needed < 0 ? node.block : std::min(s.block, node.block);
        if (s.needed < 0) s.needed = position;
      }
    }
  }

  // Copies a value to its tier where it is computed; the copy is waited for `depth` units later, and before the value
  // is needed.
  void store(ValueId id, const Saved& saved, const std::vector<int32_t>& units) {
    const int32_t block = graph_.node(graph_.region(region_).nodes[static_cast<size_t>(saved.made)]).block;
    const Copy copy = make_copy(graph_, id, to_, block);
    moved_[id] = copy.arrived;
    starts_.push_back({saved.made + 1, copy.start});
    const int64_t last = units[static_cast<size_t>(saved.made)] + depth_;
    int32_t end = saved.made + 1;
    const int32_t needing = units[static_cast<size_t>(saved.needed)];
    while (end < saved.needed && units[static_cast<size_t>(end)] <= last && units[static_cast<size_t>(end)] < needing)
      ++end;
    waits_.push_back({end, copy.wait});
  }

  Graph& graph_;
  RegionId region_;
  Tier to_;
  int64_t blocks_;
  int64_t depth_;
  Bindings bounds_;
  std::map<ValueId, Saved> saved_;
  std::map<ValueId, ValueId> moved_;
  std::vector<Insertion> starts_, waits_;
};

}  // namespace

void offload_activations(Graph& graph, Tier to, int64_t blocks, int64_t depth) {
  const RegionId regions = static_cast<RegionId>(graph.regions.size());
  for (RegionId region = 0; region < regions; ++region)
    if (trains(graph, region)) BodyOffloader(graph, region, to, blocks, depth).run();
  open_windows(graph, depth);
}

}  // namespace headroom
