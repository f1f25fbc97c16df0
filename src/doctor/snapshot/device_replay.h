// A device's trace as allocations with a begin and an end.
//
// The trace is replayed forwards. The state at its beginning follows from its end: memory that is freed without having
// been allocated, or is alive at the end without an event, was alive before. The same holds for reserved bytes, which
// are counted backwards from the final segments. A trace whose oldest events were overwritten (max_entries) is
// therefore exact from its first event on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "doctor/snapshot/memory_class.h"
#include "doctor/snapshot/snapshot.h"

namespace headroom::doctor {

// Event numbers are indexes into the device's trace.
struct Allocation {
  static constexpr int32_t kBefore = -1;
  static constexpr uint32_t kNothing = ~uint32_t{0};

  int64_t address = 0;
  int64_t size = 0;            // the requested size
  int64_t block_size = 0;      // the size that the allocator gave; 0 when unknown because the block is gone at the end
  int32_t begin = kBefore;     // index of the event that allocated it
  int32_t free_requested = 0;  // first event after which the free is pending; the trace's length: never
  int32_t end = 0;             // event that freed it; the trace's length: never
  uint32_t stack = StackTable::kNone;
  uint32_t replaced = kNothing;  // the allocation at this address whose free was not recorded; it ends here
  MemoryClass kind = MemoryClass::unknown;

  bool alive_after(int32_t event) const { return begin <= event && event < end; }
};

struct DeviceReplay {
  int64_t device = 0;
  std::span<const TraceEvent> trace;    // the snapshot's
  std::vector<Allocation> allocations;  // in the order of the events, with those from before the trace
  std::vector<uint32_t> moved;          // for each event, the allocation that it made or freed, or Allocation::kNothing
  int64_t bytes_before = 0;             // alive when the trace begins
  int64_t allocations_before = 0;
  int64_t reserved_before = 0;
  int64_t unmatched_events = 0;

  int32_t events() const { return static_cast<int32_t>(trace.size()); }
  int64_t reserved_change(int32_t event) const;
  // Calls change(allocation, made) for what the event allocated (made is true) or freed.
  template <typename Change>
  void visit_changes(int32_t event, Change change) const {
    const uint32_t number = moved[static_cast<size_t>(event)];
    if (number == Allocation::kNothing) return;
    const Allocation& allocation = allocations[number];
    const bool made = allocation.begin == event;
    if (made && allocation.replaced != Allocation::kNothing) change(allocations[allocation.replaced], false);
    change(allocation, made);
  }
};

// `classes` is indexed by stack (classify_stacks). The snapshot must outlive the replay.
DeviceReplay replay_device(const Snapshot& snapshot, int64_t device, const std::vector<MemoryClass>& classes);

}  // namespace headroom::doctor
