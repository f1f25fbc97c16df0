// Allocated and reserved bytes over the events of a trace.
#pragma once

#include <cstdint>
#include <vector>

#include "doctor/snapshot/device_replay.h"
#include "doctor/snapshot/snapshot_analysis.h"

namespace headroom::doctor {

struct Timeline {
  std::vector<int64_t> allocated;  // after each event
  std::vector<int64_t> reserved;
  int32_t peak_event = -1;  // first event with the most allocated bytes; -1 when it never exceeds the beginning
  int64_t peak_allocated = 0;
  int64_t peak_reserved = 0;
};
Timeline timeline_of(const DeviceReplay& replay);

// Seconds since the first event with a time; 0 when unknown.
double seconds_at(const DeviceReplay& replay, int64_t event);

// At most `limit` columns over all events.
std::vector<TimelineColumn> columns_of(const DeviceReplay& replay, const Timeline& timeline, int64_t limit);

}  // namespace headroom::doctor
