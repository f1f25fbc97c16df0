#include "doctor/snapshot/timeline.h"

#include <algorithm>

namespace headroom::doctor {

Timeline timeline_of(const DeviceReplay& replay) {
  Timeline out;
  out.allocated.reserve(replay.trace.size());
  out.reserved.reserve(replay.trace.size());
  int64_t allocated = out.peak_allocated = replay.bytes_before;
  int64_t reserved = out.peak_reserved = replay.reserved_before;
  for (int32_t i = 0; i < replay.events(); ++i) {
    replay.visit_changes(i, [&](const Allocation& a, bool made) { allocated += made ? a.size : -a.size; });
    reserved += replay.reserved_change(i);
    out.allocated.push_back(allocated);
    out.reserved.push_back(std::max<int64_t>(0, reserved));
    out.peak_reserved = std::max(out.peak_reserved, reserved);
    if (allocated <= out.peak_allocated) continue;
    out.peak_allocated = allocated;
    out.peak_event = i;
  }
  return out;
}

double seconds_at(const DeviceReplay& replay, int64_t event) {
  if (event < 0 || event >= replay.events()) return 0;
  const int64_t first = replay.trace.front().time_us, then = replay.trace[static_cast<size_t>(event)].time_us;
  return first > 0 && then > first ? 1e-6 * static_cast<double>(then - first) : 0;
}

std::vector<TimelineColumn> columns_of(const DeviceReplay& replay, const Timeline& timeline, int64_t limit) {
  const int64_t events = replay.events(), count = std::min(limit, events);
  std::vector<TimelineColumn> out(static_cast<size_t>(count));
  std::array<int64_t, kMemoryClasses> now{};
  for (const Allocation& allocation : replay.allocations)
    if (allocation.begin == Allocation::kBefore) now[static_cast<size_t>(allocation.kind)] += allocation.size;
  for (int64_t c = 0; c < count; ++c) {
    TimelineColumn& column = out[static_cast<size_t>(c)];
    column.first_event = events * c / count;
    column.seconds = seconds_at(replay, column.first_event);
    column.allocated_bytes = -1;
    for (int64_t i = column.first_event; i < events * (c + 1) / count; ++i) {
      replay.visit_changes(static_cast<int32_t>(i), [&](const Allocation& a, bool made) {
        now[static_cast<size_t>(a.kind)] += made ? a.size : -a.size;
      });
      const auto at = static_cast<size_t>(i);
      column.reserved_bytes = std::max(column.reserved_bytes, timeline.reserved[at]);
      if (timeline.allocated[at] <= column.allocated_bytes) continue;
      column.allocated_bytes = timeline.allocated[at];
      column.by_class = now;
    }
  }
  return out;
}

}  // namespace headroom::doctor
