#include "doctor/snapshot/device_replay.h"

#include <algorithm>
#include <map>
#include <set>

namespace headroom::doctor {
namespace {

class Replayer {
 public:
  Replayer(const Snapshot& snapshot, int64_t device, const std::vector<MemoryClass>& classes)
      : snapshot_(snapshot), classes_(classes) {
    out_.device = device;
    const auto number = static_cast<size_t>(device);
    if (number < snapshot.device_traces.size()) out_.trace = snapshot.device_traces[number];
    out_.moved.assign(out_.trace.size(), Allocation::kNothing);
  }

  DeviceReplay run() {
    for (const TraceEvent& event : out_.trace) completes_ = completes_ || event.action == TraceAction::free_completed;
    if (!completes_) find_pending_blocks();
    for (int32_t i = 0; i < out_.events(); ++i) replay(i, out_.trace[static_cast<size_t>(i)]);
    meet_final_blocks();
    count_before();
    settle_optimizer_states();
    return std::move(out_);
  }

 private:
  void find_pending_blocks() {
    for (const Segment& segment : snapshot_.segments)
      for (const Block& block : segment.blocks)
        if (block.state == BlockState::pending_free) pending_at_end_.insert(block.address);
  }

  void replay(int32_t i, const TraceEvent& event) {
    switch (event.action) {
      case TraceAction::alloc:
        return allocate(i, event);
      case TraceAction::free_requested:
        return completes_ || pending_at_end_.count(event.address) > 0 ? request_free(i, event) : free(i, event);
      case TraceAction::free_completed:
        return free(i, event);
      default:
        return;
    }
  }

  uint32_t add(const Allocation& allocation) {
    out_.allocations.push_back(allocation);
    return static_cast<uint32_t>(out_.allocations.size() - 1);
  }

  void allocate(int32_t i, const TraceEvent& event) {
    auto [at, added] = latest_.emplace(event.address, 0);
    Allocation made;
    if (!added && out_.allocations[at->second].end == out_.events()) {
      out_.allocations[at->second].end = i;
      made.replaced = at->second;
      ++out_.unmatched_events;
    }
    made.address = event.address;
    made.size = event.size;
    made.begin = i;
    made.free_requested = made.end = out_.events();
    made.stack = event.stack;
    made.kind = classes_[event.stack];
    at->second = out_.moved[static_cast<size_t>(i)] = add(made);
  }

  // The allocation at the event's address; one from before the trace when the address is new.
  uint32_t freed_by(const TraceEvent& event) {
    auto [at, added] = latest_.emplace(event.address, 0);
    if (added) {
      Allocation before;
      before.address = event.address;
      before.size = event.size;
      before.free_requested = before.end = out_.events();
      before.kind = MemoryClass::before_recording;
      at->second = add(before);
    }
    return at->second;
  }

  void request_free(int32_t i, const TraceEvent& event) {
    Allocation& freed = out_.allocations[freed_by(event)];
    if (freed.end == out_.events()) freed.free_requested = std::min(freed.free_requested, i);
  }

  void free(int32_t i, const TraceEvent& event) {
    const uint32_t number = freed_by(event);
    Allocation& freed = out_.allocations[number];
    if (freed.end != out_.events()) {
      ++out_.unmatched_events;
      return;
    }
    freed.end = i;
    freed.free_requested = std::min(freed.free_requested, i);
    out_.moved[static_cast<size_t>(i)] = number;
  }

  // Blocks in use at the end without any event were allocated before the trace.
  void meet_final_blocks() {
    for (const Segment& segment : snapshot_.segments) {
      if (segment.device != out_.device) continue;
      for (const Block& block : segment.blocks)
        if (block.state != BlockState::inactive) meet(block);
    }
  }

  void meet(const Block& block) {
    auto [at, added] = latest_.emplace(block.address, 0);
    if (added) {
      Allocation before;
      before.address = block.address;
      before.size = block.requested_size;
      before.free_requested = block.state == BlockState::pending_free ? Allocation::kBefore : out_.events();
      before.end = out_.events();
      before.stack = block.stack;
      const bool told = block.stack != StackTable::kNone || out_.trace.empty();
      before.kind = told ? classes_[block.stack] : MemoryClass::before_recording;
      at->second = add(before);
    }
    Allocation& met = out_.allocations[at->second];
    if (met.end != out_.events()) {
      ++out_.unmatched_events;
      return;
    }
    met.block_size = block.size;
    if (met.stack == StackTable::kNone && block.stack != StackTable::kNone) {
      met.stack = block.stack;
      met.kind = classes_[block.stack];
    }
  }

  void count_before() {
    for (const Allocation& allocation : out_.allocations) {
      if (allocation.begin != Allocation::kBefore) continue;
      out_.bytes_before += allocation.size;
      ++out_.allocations_before;
    }
    for (const Segment& segment : snapshot_.segments)
      if (segment.device == out_.device) out_.reserved_before += segment.total_size;
    for (int32_t i = 0; i < out_.events(); ++i) out_.reserved_before -= out_.reserved_change(i);
    out_.reserved_before = std::max<int64_t>(0, out_.reserved_before);
  }

  // Before PyTorch 2.0 step() itself creates the states: allocations that outlive the step.
  void settle_optimizer_states() {
    const int32_t long_time = std::max(64, out_.events() / 10);
    for (Allocation& allocation : out_.allocations)
      if (allocation.kind == MemoryClass::optimizer_step && allocation.end - allocation.begin > long_time)
        allocation.kind = MemoryClass::optimizer_state;
  }

  const Snapshot& snapshot_;
  const std::vector<MemoryClass>& classes_;
  DeviceReplay out_;
  // Whether the trace records when frees complete. If not, a request counts as the free unless the block is pending at
  // the end.
  bool completes_ = false;
  std::set<int64_t> pending_at_end_;
  std::map<int64_t, uint32_t> latest_;  // by address
};

}  // namespace

int64_t DeviceReplay::reserved_change(int32_t event) const {
  const TraceEvent& what = trace[static_cast<size_t>(event)];
  switch (what.action) {
    case TraceAction::segment_alloc:
    case TraceAction::segment_map:
      return what.size;
    case TraceAction::segment_free:
    case TraceAction::segment_unmap:
      return -what.size;
    default:
      return 0;
  }
}

DeviceReplay replay_device(const Snapshot& snapshot, int64_t device, const std::vector<MemoryClass>& classes) {
  return Replayer(snapshot, device, classes).run();
}

}  // namespace headroom::doctor
