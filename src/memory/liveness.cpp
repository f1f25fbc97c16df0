#include "memory/liveness.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <unordered_map>

#include "base/error.h"
#include "ir/call_types.h"
#include "ops/backend.h"

namespace headroom {
namespace {

class Analysis {
 public:
  Analysis(const Graph& graph, const Bindings& bindings)
      : graph_(graph), leader_(graph.values.size()), first_(graph.values.size(), kFar), last_(graph.values.size(), -1) {
    out_.slots.reserve(graph.nodes.size());
    aliases_end_.reserve(graph.nodes.size());
    std::iota(leader_.begin(), leader_.end(), 0);
    bytes_.reserve(graph.values.size());
    ConcreteType type;
    for (const Value& value : graph.values) {
      concrete(value.type, bindings, type);
      bytes_.push_back(storage_bytes(type));
    }
  }

  Liveness run() {
    for (const Program& program : graph_.programs) {
      const int64_t begin = now();
      walk(program.region);
      for (ValueId result : graph_.region(program.region).results) touch(result, now() - 1);
      out_.program_slots.emplace_back(begin, now());
    }
    join_must_aliases();
    join_may_aliases();
    collect();
    return std::move(out_);
  }

 private:
  static constexpr int64_t kFar = INT64_MAX;

  int64_t now() const { return static_cast<int64_t>(out_.slots.size()); }

  void add_slot(const Slot& slot, const std::vector<Alias>& aliases) {
    out_.slots.push_back(slot);
    aliases_.insert(aliases_.end(), aliases.begin(), aliases.end());
    aliases_end_.push_back(aliases_.size());
  }

  // What the op of a slot's call says of its storage.
  std::span<const Alias> aliases_of(size_t slot) const {
    const size_t begin = slot == 0 ? 0 : aliases_end_[slot - 1];
    return {aliases_.data() + begin, aliases_end_[slot] - begin};
  }

  void touch(ValueId id, int64_t slot) {
    const size_t i = static_cast<size_t>(id);
    first_[i] = std::min(first_[i], slot);
    last_[i] = std::max(last_[i], slot);
  }

  void walk(RegionId region) {
    for (ValueId param : graph_.region(region).params) touch(param, now());
    for (NodeId id : graph_.region(region).nodes) {
      if (is_loop(graph_.node(id)))
        walk_loop(id);
      else
        walk_call(id);
    }
  }

  void walk_call(NodeId id) {
    const Node& node = graph_.node(id);
    const bool waits = node.op->kind() == OpKind::wait;
    for (ValueId input : node.inputs) {
      use(input, now());
      if (!waits) continue;
      if (const auto start = starts_.find(input); start != starts_.end())
        for (ValueId source : graph_.node(start->second).inputs) use(source, now());
    }
    for (ValueId output : node.outputs) touch(output, now());
    if (starts_transfer(node.op->kind())) starts_[token_of(node)] = id;
    add_slot({id, SlotKind::call}, node.op->aliases(node.attrs, static_cast<int>(node.inputs.size())));
  }

  // A value from outside that a loop body reads is needed again by the next trip: it lives until the loop ends.
  void use(ValueId id, int64_t slot) {
    touch(id, slot);
    for (size_t depth = 0; depth < open_loops_.size(); ++depth)
      if (first_[static_cast<size_t>(id)] < open_loops_[depth]) outer_uses_[depth].push_back(id);
  }

  void walk_loop(NodeId id) {
    const Node& node = graph_.node(id);
    const Region& body = graph_.region(node.body);
    for (ValueId input : node.inputs) use(input, now());
    const int64_t begin = now();
    add_slot({id, SlotKind::loop_begin}, {});
    open_loops_.push_back(begin);
    outer_uses_.emplace_back();
    walk(node.body);
    const int64_t end = now();
    for (ValueId result : body.results) touch(result, end);
    for (ValueId param : body.params) touch(param, begin), touch(param, end);
    for (ValueId outer : outer_uses_.back()) touch(outer, end);
    outer_uses_.pop_back();
    open_loops_.pop_back();
    for (ValueId output : node.outputs) touch(output, end);
    add_slot({id, SlotKind::loop_end}, {});
  }

  ValueId find(ValueId id) {
    while (leader_[static_cast<size_t>(id)] != id) {
      leader_[static_cast<size_t>(id)] = leader_[static_cast<size_t>(leader_[static_cast<size_t>(id)])];
      id = leader_[static_cast<size_t>(id)];
    }
    return id;
  }

  void join(ValueId a, ValueId b) {
    a = find(a), b = find(b);
    if (a == b) return;
    HR_CHECK(bytes_[static_cast<size_t>(a)] == bytes_[static_cast<size_t>(b)],
             "%{} and %{} share a storage and differ in size", a, b);
    HR_CHECK(graph_.value(a).type.tier == graph_.value(b).type.tier, "%{} and %{} share a storage and differ in tier",
             a, b);
    if (graph_.value(b).persistent) std::swap(a, b);
    HR_CHECK(!graph_.value(b).persistent, "two persistent values, {} and {}, share a storage", graph_.value(a).name,
             graph_.value(b).name);
    leader_[static_cast<size_t>(b)] = a;
    first_[static_cast<size_t>(a)] = std::min(first_[static_cast<size_t>(a)], first_[static_cast<size_t>(b)]);
    last_[static_cast<size_t>(a)] = std::max(last_[static_cast<size_t>(a)], last_[static_cast<size_t>(b)]);
  }

  void join_must_aliases() {
    for (size_t at = 0; at < out_.slots.size(); ++at) {
      const Slot& slot = out_.slots[at];
      const Node& node = graph_.node(slot.node);
      if (slot.kind == SlotKind::loop_begin) {
        const Region& body = graph_.region(node.body);
        for (size_t i = 0; i < node.inputs.size(); ++i) {
          join(node.inputs[i], body.params[i]);
          join(node.inputs[i], body.results[i]);
          join(node.inputs[i], node.outputs[i]);
        }
      } else {
        for (const Alias& alias : aliases_of(at))
          if (alias.must)
            join(node.inputs[static_cast<size_t>(alias.input)], node.outputs[static_cast<size_t>(alias.output)]);
      }
    }
  }

  // In program order: an output takes over the storage of an input that dies at this node.
  void join_may_aliases() {
    for (int64_t at = 0; at < now(); ++at) {
      const Slot& slot = out_.slots[static_cast<size_t>(at)];
      const Node& node = graph_.node(slot.node);
      for (const Alias& alias : aliases_of(static_cast<size_t>(at))) {
        if (alias.must) continue;
        const ValueId input = node.inputs[static_cast<size_t>(alias.input)],
                      output = node.outputs[static_cast<size_t>(alias.output)];
        if (may_join(node, input, output, at)) join(input, output);
      }
    }
  }

  bool may_join(const Node& node, ValueId input, ValueId output, int64_t at) {
    const ValueId from = find(input), to = find(output);
    if (from == to || graph_.value(from).persistent || graph_.value(to).persistent) return false;
    if (graph_.value(input).type.dtype != graph_.value(output).type.dtype) return false;
    if (graph_.value(input).type.tier != graph_.value(output).type.tier) return false;
    if (bytes_[static_cast<size_t>(from)] != bytes_[static_cast<size_t>(to)]) return false;
    if (last_[static_cast<size_t>(from)] != at || first_[static_cast<size_t>(to)] != at) return false;
    // Another operand of this node must not already live in that storage.
    for (ValueId other : node.inputs)
      if (other != input && find(other) == from) return false;
    for (ValueId other : node.outputs)
      if (other != output && find(other) == from) return false;
    return std::count(node.inputs.begin(), node.inputs.end(), input) == 1;
  }

  void collect() {
    out_.storage_of_value.assign(graph_.values.size(), kNone);
    std::vector<int32_t> of_leader(graph_.values.size(), kNone);
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id) {
      const ValueId leader = find(id);
      const Value& value = graph_.value(leader);
      if (!value.persistent && last_[static_cast<size_t>(leader)] < 0) continue;
      int32_t& storage = of_leader[static_cast<size_t>(leader)];
      if (storage == kNone) {
        storage = static_cast<int32_t>(out_.storages.size());
        StorageLife life{leader,
                         kNone,
                         value.role,
                         value.persistent,
                         bytes_[static_cast<size_t>(leader)],
                         first_[static_cast<size_t>(leader)],
                         last_[static_cast<size_t>(leader)] + 1,
                         value.type.tier};
        if (value.persistent) life.lower = 0, life.upper = std::max<int64_t>(1, now());
        out_.storages.push_back(life);
      }
      out_.storage_of_value[static_cast<size_t>(id)] = storage;
    }
  }

  const Graph& graph_;
  Liveness out_;
  std::vector<ValueId> leader_;
  std::vector<int64_t> first_, last_, bytes_;
  std::vector<Alias> aliases_;       // of all slots, in order
  std::vector<size_t> aliases_end_;  // by slot
  std::vector<int64_t> open_loops_;
  std::vector<std::vector<ValueId>> outer_uses_;
  std::unordered_map<ValueId, NodeId> starts_;  // by their tokens, which the waits read
};

}  // namespace

std::vector<Buffer> Liveness::buffers(Tier tier) const {
  std::vector<Buffer> out;
  out.reserve(storages.size());
  for (size_t i = 0; i < storages.size(); ++i)
    if (const StorageLife& life = storages[i]; life.tier == tier)
      out.push_back({static_cast<int64_t>(i), life.lower, life.upper, life.bytes, -1});
  return out;
}

Liveness analyze_liveness(const Graph& graph, const Bindings& bindings, const DeviceFacts& facts) {
  Liveness liveness = Analysis(graph, bindings).run();
  liveness.scratch_of_slot.assign(liveness.slots.size(), kNone);
  book_scratch(graph, bindings, facts, liveness);
  return liveness;
}

void book_scratch(const Graph& graph, const Bindings& bindings, const DeviceFacts& facts, Liveness& liveness) {
  CallTypes types;
  ScratchUsers users(facts);
  for (size_t at = 0; at < liveness.slots.size(); ++at) {
    const Slot& slot = liveness.slots[at];
    if (slot.kind != SlotKind::call) continue;
    const Node& node = graph.node(slot.node);
    if (!users.contain(*node.op)) continue;
    const int64_t bytes = scratch_bytes(*node.op, types.of(graph, node, bindings), facts);
    if (bytes <= 0) continue;
    int32_t& storage = liveness.scratch_of_slot[at];
    if (storage == kNone) {
      storage = static_cast<int32_t>(liveness.storages.size());
      const auto time = static_cast<int64_t>(at);
      liveness.storages.push_back({kNone, slot.node, Role::workspace, false, 0, time, time + 1});
    }
    int64_t& booked = liveness.storages[static_cast<size_t>(storage)].bytes;
    booked = std::max(booked, bytes);
  }
}

}  // namespace headroom
