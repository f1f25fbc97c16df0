// What holds the memory at one moment of the trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/snapshot/device_replay.h"
#include "doctor/snapshot/snapshot_analysis.h"

namespace headroom::doctor {

// Names of code lines for stacks, computed once per snapshot.
class HolderNames {
 public:
  explicit HolderNames(const StackTable& stacks);
  // The code line to which the allocation is attributed; also for those without a stack.
  const std::string& place(const Allocation& allocation) const;
  const std::string& place(uint32_t stack, MemoryClass kind) const;
  // At most 12 frames, innermost first: those of Python, else of C++.
  std::vector<std::string> frames(uint32_t stack) const;

 private:
  const StackTable& stacks_;
  std::vector<std::string> places_;
  std::string before_, backward_, unknown_;
};

// Groups `allocations` by code line and class, or by whole stack; largest first, ties by name; at most `limit`.
std::vector<MemoryHolder> holders_of(const std::vector<const Allocation*>& allocations, const HolderNames& names,
                                     bool by_stack, size_t limit);

// The state after `event`; -1: before the trace. The caller sets reserved bytes, seconds and time.
MemoryInstant instant_after(const DeviceReplay& replay, int32_t event, const HolderNames& names);

}  // namespace headroom::doctor
