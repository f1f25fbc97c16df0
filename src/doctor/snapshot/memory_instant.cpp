#include "doctor/snapshot/memory_instant.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "doctor/snapshot/frame_origin.h"

namespace headroom::doctor {
namespace {

constexpr size_t kMostFrames = 12, kMostHolders = 20;

struct Group {
  int64_t bytes = 0, count = 0;
  const Allocation* largest = nullptr;

  void add(const Allocation& allocation) {
    bytes += allocation.size;
    ++count;
    if (largest == nullptr || allocation.size > largest->size) largest = &allocation;
  }
};

}  // namespace

HolderNames::HolderNames(const StackTable& stacks)
    : stacks_(stacks),
      places_(places_of(stacks)),
      before_("(made before the recording began)"),
      backward_("(no Python frames: the backward thread)"),
      unknown_("(no stack recorded)") {}

const std::string& HolderNames::place(uint32_t stack, MemoryClass kind) const {
  if (stack != StackTable::kNone) return places_[stack];
  return kind == MemoryClass::before_recording ? before_ : kind == MemoryClass::gradients ? backward_ : unknown_;
}

const std::string& HolderNames::place(const Allocation& allocation) const {
  return place(allocation.stack, allocation.kind);
}

std::vector<std::string> HolderNames::frames(uint32_t stack) const {
  std::vector<std::string> python, native;
  for (const uint32_t number : stacks_.stacks[stack]) {
    const StackFrame& frame = stacks_.frames[number];
    const FrameOrigin origin = frame_origin(frame);
    if (origin == FrameOrigin::runtime) continue;
    auto& list = origin == FrameOrigin::native ? native : python;
    if (list.size() < kMostFrames) list.push_back(shown_frame(frame));
    if (python.size() == kMostFrames) break;
  }
  return python.empty() ? native : python;
}

std::vector<MemoryHolder> holders_of(const std::vector<const Allocation*>& allocations, const HolderNames& names,
                                     bool by_stack, size_t limit) {
  // Grouped by stack first, so that names are compared once per stack.
  std::map<std::pair<uint32_t, MemoryClass>, Group> stacks;
  for (const Allocation* allocation : allocations) stacks[{allocation->stack, allocation->kind}].add(*allocation);
  std::map<std::tuple<std::string_view, MemoryClass, uint32_t>, Group> groups;
  for (const auto& [key, group] : stacks) {
    Group& into = groups[{names.place(key.first, key.second), key.second, by_stack ? key.first : 0}];
    into.bytes += group.bytes;
    into.count += group.count;
    if (into.largest == nullptr || group.largest->size > into.largest->size) into.largest = group.largest;
  }
  std::vector<MemoryHolder> out;
  std::vector<std::pair<int64_t, decltype(groups)::const_iterator>> order;
  for (auto at = groups.cbegin(); at != groups.cend(); ++at) order.emplace_back(-at->second.bytes, at);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [bytes, at] : order) {
    if (out.size() == limit) break;
    MemoryHolder holder;
    holder.place = std::get<0>(at->first);
    holder.kind = std::get<1>(at->first);
    holder.bytes = at->second.bytes;
    holder.count = at->second.count;
    holder.stack = names.frames(at->second.largest->stack);
    out.push_back(std::move(holder));
  }
  return out;
}

MemoryInstant instant_after(const DeviceReplay& replay, int32_t event, const HolderNames& names) {
  MemoryInstant out;
  out.event = event;
  std::vector<const Allocation*> alive;
  for (const Allocation& allocation : replay.allocations) {
    if (!allocation.alive_after(event)) continue;
    alive.push_back(&allocation);
    out.allocated_bytes += allocation.size;
    out.by_class[static_cast<size_t>(allocation.kind)] += allocation.size;
  }
  out.allocations = static_cast<int64_t>(alive.size());
  out.holders = holders_of(alive, names, false, kMostHolders);
  out.stack_holders = holders_of(alive, names, true, kMostHolders);
  return out;
}

}  // namespace headroom::doctor
