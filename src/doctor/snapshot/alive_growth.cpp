#include "doctor/snapshot/alive_growth.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace headroom::doctor {
namespace {

constexpr size_t kLeastSteps = 4, kMostSteps = 4096, kMostHolders = 8;
constexpr int64_t kLeastGrowth = int64_t{1} << 20;

// The events at which steps begin.
struct Steps {
  std::string unit;
  std::vector<int32_t> begins;
};

Steps annotated_steps(const Snapshot& snapshot, const DeviceReplay& replay, std::string_view prefix,
                      std::string_view stage, const char* unit) {
  Steps out;
  const auto& trace = replay.trace;
  const auto earlier = [](const TraceEvent& a, const TraceEvent& b) { return a.time_us < b.time_us; };
  if (trace.empty() || trace.front().time_us == 0 || !std::is_sorted(trace.begin(), trace.end(), earlier)) return out;
  out.unit = unit;
  for (const Annotation& annotation : snapshot.annotations) {
    if (annotation.name.substr(0, prefix.size()) != prefix || annotation.stage != stage) continue;
    if (annotation.time_us < trace.front().time_us) continue;
    TraceEvent then;
    then.time_us = annotation.time_us;
    const auto at = std::lower_bound(trace.begin(), trace.end(), then, earlier);
    if (at != trace.end()) out.begins.push_back(static_cast<int32_t>(at - trace.begin()));
  }
  std::sort(out.begins.begin(), out.begins.end());
  out.begins.erase(std::unique(out.begins.begin(), out.begins.end()), out.begins.end());
  return out;
}

// The first optimizer allocation after a forward pass begins a step.
Steps optimizer_steps(const DeviceReplay& replay) {
  Steps out{"optimizer step", {}};
  bool forward = true;
  for (int32_t i = 0; i < replay.events(); ++i) {
    replay.visit_changes(i, [&](const Allocation& allocation, bool made) {
      if (!made) return;
      const bool steps =
          allocation.kind == MemoryClass::optimizer_step || allocation.kind == MemoryClass::optimizer_state;
      if (steps && forward) out.begins.push_back(i);
      forward = steps ? false : forward || allocation.kind == MemoryClass::activations;
    });
  }
  return out;
}

// Whether the distances between the events, apart from the first, differ by less than a factor of two.
bool is_regular(const std::vector<int32_t>& events) {
  int32_t least = events[2] - events[1], most = least;
  for (size_t i = 3; i < events.size(); ++i) {
    least = std::min(least, events[i] - events[i - 1]);
    most = std::max(most, events[i] - events[i - 1]);
  }
  return most < 2 * least;
}

// The rarest stack that occurs regularly from the first third of the trace to the last.
Steps recurring_steps(const DeviceReplay& replay, const HolderNames& names) {
  std::map<uint32_t, std::vector<int32_t>> by_stack;
  for (const Allocation& allocation : replay.allocations)
    if (allocation.begin >= 0 && allocation.stack != StackTable::kNone &&
        allocation.kind != MemoryClass::optimizer_state && allocation.kind != MemoryClass::weights)
      by_stack[allocation.stack].push_back(allocation.begin);
  const std::vector<int32_t>* best = nullptr;
  Steps out;
  for (const auto& [stack, begins] : by_stack) {
    const bool spread = begins.front() < replay.events() / 3 && begins.back() > replay.events() / 3 * 2;
    if (begins.size() <= kLeastSteps || begins.size() > kMostSteps || !spread || !is_regular(begins)) continue;
    if (best != nullptr && best->size() <= begins.size()) continue;
    best = &begins;
    out.unit = "run of " + names.place(stack, MemoryClass::other);
  }
  if (best != nullptr) out.begins = *best;
  return out;
}

Steps steps_of(const Snapshot& snapshot, const DeviceReplay& replay, const HolderNames& names) {
  for (Steps steps : {annotated_steps(snapshot, replay, "Optimizer.step#", "START", "optimizer step"),
                      annotated_steps(snapshot, replay, "ProfilerStep#", "START", "profiler step"),
                      optimizer_steps(replay), recurring_steps(replay, names)})
    if (steps.begins.size() > kLeastSteps && steps.begins.size() <= kMostSteps) return steps;
  return {};
}

int64_t median(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

AliveGrowth alive_growth(const Snapshot& snapshot, const DeviceReplay& replay, const Timeline& timeline,
                         const HolderNames& names) {
  AliveGrowth out;
  const Steps steps = steps_of(snapshot, replay, names);
  if (steps.begins.empty()) return out;
  out.unit = steps.unit;
  for (size_t i = 0; i + 1 < steps.begins.size(); ++i)
    out.lows.push_back(*std::min_element(timeline.allocated.begin() + steps.begins[i],
                                         timeline.allocated.begin() + steps.begins[i + 1]));
  const size_t settled = out.lows.size() >= 6 ? 2 : 1;
  std::vector<int64_t> changes;
  for (size_t i = settled + 1; i < out.lows.size(); ++i) changes.push_back(out.lows[i] - out.lows[i - 1]);
  if (changes.size() + 1 < kLeastSteps - 1) return out;
  out.bytes_per_unit = median(changes);
  const auto rising = std::count_if(changes.begin(), changes.end(), [](int64_t change) { return change > 0; });
  const int64_t total = out.lows.back() - out.lows[settled];
  out.grows = out.bytes_per_unit > 0 && 4 * static_cast<size_t>(rising) >= 3 * changes.size() &&
              total >= std::max(kLeastGrowth, timeline.peak_allocated / 100);
  if (!out.grows) return out;
  std::vector<const Allocation*> kept;
  for (const Allocation& allocation : replay.allocations)
    if (allocation.begin >= steps.begins[settled] && allocation.begin < steps.begins.back() &&
        allocation.end == replay.events())
      kept.push_back(&allocation);
  out.holders = holders_of(kept, names, false, kMostHolders);
  return out;
}

}  // namespace headroom::doctor
