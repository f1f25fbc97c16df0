// From a graph to buffers: storages (values joined by aliasing), their lifetimes on the run's timeline, and scratch.
//
// Time is the index of a slot: every node of every program in order, plus one slot where a loop begins and one where it
// ends. The programs follow each other on one timeline, so transients of different phases reuse the same bytes. A
// storage is live on [first definition, last use + 1); inputs and outputs of a node conflict unless they share a
// storage; scratch is live in its node's slot. What a loop body reads from outside lives until the loop ends.
// Persistent values live over the whole timeline. A storage lies in the tier of its values; scratch is on the device.
// The source and the destination of a copy are live from its start to its wait, because the copy may happen at any time
// between.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "memory/buffer.h"

namespace headroom {

enum class SlotKind : uint8_t { call, loop_begin, loop_end };

struct Slot {
  NodeId node = kNone;
  SlotKind kind = SlotKind::call;
};

struct StorageLife {
  ValueId value = kNone;  // a value that lives in it; kNone for scratch
  NodeId scratch_of = kNone;
  Role role = Role::activation;
  bool persistent = false;
  int64_t bytes = 0;
  int64_t lower = 0;
  int64_t upper = 0;
  Tier tier = Tier::device;
};

struct Liveness {
  std::vector<Slot> slots;
  std::vector<int32_t> storage_of_value;  // by ValueId, kNone for values that no program mentions
  std::vector<int32_t> scratch_of_slot;   // by slot, kNone when the node needs none
  std::vector<StorageLife> storages;
  std::vector<std::pair<int64_t, int64_t>> program_slots;  // by program: [begin, end)

  // One buffer per storage of the tier, in the order of the storages; its id is the index of its storage.
  std::vector<Buffer> buffers(Tier tier) const;
};

// Pure; throws InternalError if a `must` alias joins storages of different sizes or tiers, or two persistent values.
Liveness analyze_liveness(const Graph& graph, const Bindings& bindings, const DeviceFacts& facts);

// Raises the scratch of the graph's calls to what they need with other bindings: kernels chosen by shape may need more
// for a shorter sequence.
void book_scratch(const Graph& graph, const Bindings& bindings, const DeviceFacts& facts, Liveness& liveness);

}  // namespace headroom
