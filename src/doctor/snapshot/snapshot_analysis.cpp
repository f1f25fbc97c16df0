#include "doctor/snapshot/snapshot_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "doctor/snapshot/alive_growth.h"
#include "doctor/snapshot/device_replay.h"
#include "doctor/snapshot/fragmentation.h"
#include "doctor/snapshot/memory_instant.h"
#include "doctor/snapshot/timeline.h"

namespace headroom::doctor {
namespace {

constexpr size_t kMostFailures = 64;
constexpr int64_t kColumns = 720;

class DeviceAnalyser {
 public:
  DeviceAnalyser(const Snapshot& snapshot, int64_t device, const std::vector<MemoryClass>& classes,
                 const HolderNames& names)
      : snapshot_(snapshot),
        classes_(classes),
        names_(names),
        replay_(replay_device(snapshot, device, classes)),
        timeline_(timeline_of(replay_)) {
    out_.device = device;
  }

  DeviceAnalysis run() {
    out_.events = replay_.events();
    out_.seconds = seconds_at(replay_, out_.events - 1);
    out_.allocations_before = replay_.allocations_before;
    out_.bytes_before = replay_.bytes_before;
    out_.unmatched_events = replay_.unmatched_events;
    out_.complete_history = out_.events > 0 && replay_.allocations_before == 0 && replay_.reserved_before == 0;
    out_.peak_reserved_bytes = timeline_.peak_reserved;
    out_.peak = instant(timeline_.peak_event);
    out_.end = instant(replay_.events() - 1);
    find_failures();
    BlockRequest request;
    if (failed_event_ >= 0) request = request_of(event(failed_event_));
    out_.end_fragmentation = fragmentation_at_end(snapshot_, out_.device, request);
    out_.growth = alive_growth(snapshot_, replay_, timeline_, names_);
    out_.timeline = columns_of(replay_, timeline_, kColumns);
    return std::move(out_);
  }

 private:
  const TraceEvent& event(int32_t number) const { return replay_.trace[static_cast<size_t>(number)]; }

  BlockRequest request_of(const TraceEvent& oom) const { return {oom.size, snapshot_.streams[oom.stream]}; }

  MemoryInstant instant(int32_t number) const {
    MemoryInstant out = instant_after(replay_, number, names_);
    out.reserved_bytes = number < 0 ? replay_.reserved_before : timeline_.reserved[static_cast<size_t>(number)];
    out.seconds = seconds_at(replay_, number);
    if (number >= 0) out.time_us = event(number).time_us;
    return out;
  }

  void find_failures() {
    for (int32_t i = 0; i < replay_.events(); ++i) {
      if (event(i).action != TraceAction::oom) continue;
      ++out_.failure_count;
      failed_event_ = i;
      OutOfMemoryEvent failure;
      failure.event = i;
      failure.seconds = seconds_at(replay_, i);
      failure.requested_bytes = event(i).size;
      failure.device_free_bytes = event(i).address;
      failure.allocated_bytes = timeline_.allocated[static_cast<size_t>(i)];
      failure.reserved_bytes = timeline_.reserved[static_cast<size_t>(i)];
      failure.kind = classes_[event(i).stack];
      failure.place = names_.place(event(i).stack, failure.kind);
      out_.failures.push_back(std::move(failure));
      if (out_.failures.size() > kMostFailures) out_.failures.erase(out_.failures.begin());
    }
    if (failed_event_ < 0) return;
    out_.failure = instant(failed_event_);
    ReservedRanges reserved(snapshot_, out_.device);
    for (int32_t i = replay_.events() - 1; i > failed_event_; --i) reserved.undo(event(i));
    out_.failure_fragmentation =
        fragmentation_after(replay_, failed_event_, reserved, request_of(event(failed_event_)));
  }

  const Snapshot& snapshot_;
  const std::vector<MemoryClass>& classes_;
  const HolderNames& names_;
  DeviceReplay replay_;
  Timeline timeline_;
  int32_t failed_event_ = -1;
  DeviceAnalysis out_;
};

void note_device(const DeviceAnalysis& device, SnapshotAnalysis& out) {
  if (device.events > 0 && !device.complete_history && device.bytes_before > 0)
    out.notes.push_back(
        fmt::format("device {}: {} in {} allocations were made before the first recorded event: recording began later, "
                    "or max_entries "
                    "dropped the oldest events; a higher peak before it cannot be seen",
                    device.device, format_bytes(device.bytes_before), device.allocations_before));
  if (device.unmatched_events > 0)
    out.notes.push_back(
        fmt::format("device {}: {} events do not fit the others (skipped actions?); figures over time are "
                    "approximate",
                    device.device, device.unmatched_events));
}

}  // namespace

SnapshotAnalysis analyse_snapshot(const Snapshot& snapshot) {
  SnapshotAnalysis out;
  out.source = snapshot.source;
  out.settings = snapshot.settings;
  out.pinned_host_bytes = snapshot.pinned_host_bytes;
  out.has_trace = snapshot.has_trace;
  out.has_frames = snapshot.has_frames;
  const std::vector<MemoryClass> classes = classify_stacks(snapshot.stacks);
  const HolderNames names(snapshot.stacks);
  std::set<int64_t> devices;
  for (const Segment& segment : snapshot.segments) devices.insert(segment.device);
  for (size_t i = 0; i < snapshot.device_traces.size(); ++i)
    if (!snapshot.device_traces[i].empty()) devices.insert(static_cast<int64_t>(i));
  for (const int64_t device : devices) {
    out.devices.push_back(DeviceAnalyser(snapshot, device, classes, names).run());
    note_device(out.devices.back(), out);
  }
  if (!out.has_trace)
    out.notes.push_back(
        "the snapshot holds no events: it shows the end state only; call torch.cuda.memory._record_memory_history() "
        "first");
  if (!out.has_frames && !out.devices.empty())
    out.notes.push_back(
        "the snapshot holds no stacks: call torch.cuda.memory._record_memory_history(stacks=\"python\") before the "
        "model");
  return out;
}

}  // namespace headroom::doctor
