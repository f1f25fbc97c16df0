#include "planner/layer_facts.h"

#include <algorithm>

#include "base/bytes.h"
#include "ir/call_types.h"

namespace headroom {
namespace {

// The first slot of the backward pass, when everything that layers keep is alive.
int64_t turning_slot(const Graph& graph, const Liveness& liveness) {
  for (size_t slot = 0; slot < liveness.slots.size(); ++slot)
    if (graph.node(liveness.slots[slot].node).stage == Stage::backward) return static_cast<int64_t>(slot);
  return kNone;
}

}  // namespace

void BesideKept::count(int64_t bytes, int64_t waiting) {
  int64_t& most = waiting > 0 ? kept : none_kept;
  most = std::max(most, bytes - waiting);
}

KeptByLayers::KeptByLayers(const Graph& graph, const Liveness& liveness, int64_t alignment, int64_t layers)
    : graph_(graph),
      liveness_(liveness),
      saved_(static_cast<size_t>(layers), 0),
      waiting_(liveness.slots.size() + 1, 0) {
  const int64_t turn = turning_slot(graph, liveness);
  for (const StorageLife& life : liveness.storages) {
    if (life.tier != Tier::device || life.persistent || life.lower >= turn || life.upper <= turn) continue;
    const int32_t layer = graph.node(liveness.slots[static_cast<size_t>(life.lower)].node).block;
    if (layer < 0) continue;
    const int64_t bytes = align_up(life.bytes, alignment);
    saved_[static_cast<size_t>(layer)] += bytes;
    waiting_[static_cast<size_t>(life.lower)] += bytes;
    waiting_[static_cast<size_t>(life.upper)] -= bytes;
  }
  for (size_t slot = 1; slot < waiting_.size(); ++slot) waiting_[slot] += waiting_[slot - 1];
}

std::vector<int64_t> KeptByLayers::work(std::span<const int64_t> live, BesideKept& beside) const {
  std::vector<int64_t> before(saved_.size(), 0), out(saved_.size(), 0);
  for (size_t layer = 1; layer < saved_.size(); ++layer) before[layer] = before[layer - 1] + saved_[layer - 1];
  for (size_t slot = 0; slot < live.size(); ++slot) {
    const Node& node = graph_.node(liveness_.slots[slot].node);
    if (liveness_.slots[slot].kind == SlotKind::call && is_loss(node.op->cost_class())) continue;
    if (node.block < 0 || waiting_[slot] == 0) {
      beside.count(live[slot], waiting_[slot]);
      continue;
    }
    const size_t layer = static_cast<size_t>(node.block);
    out[layer] = std::max(out[layer], live[slot] - before[layer]);
  }
  return out;
}

std::vector<double> redone_seconds(const Graph& graph, const Bindings& bindings, CallCosts& costs, int64_t layers) {
  std::vector<double> out(static_cast<size_t>(layers), 0);
  CallTypes types;
  for (const Region& region : graph.regions)
    for (const NodeId id : region.nodes) {
      const Node& node = graph.node(id);
      if (node.stage == Stage::recompute && node.block >= 0)
        out[static_cast<size_t>(node.block)] += costs.seconds(*node.op, types.of(graph, node, bindings));
    }
  return out;
}

}  // namespace headroom
