// The analysis of a snapshot: the peak, what held the memory then, fragmentation, out-of-memory events, growth.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/snapshot/memory_class.h"
#include "doctor/snapshot/snapshot.h"

namespace headroom::doctor {

// Allocations attributed to the same code line.
struct MemoryHolder {
  std::string place;  // "llama/modeling_llama.py:176 forward": the innermost frame outside PyTorch
  MemoryClass kind = MemoryClass::unknown;
  int64_t bytes = 0;
  int64_t count = 0;
  std::vector<std::string> stack;  // of the largest allocation, innermost first, at most 12 frames
};

// The state of a device at one moment. Bytes are requested sizes, except `reserved_bytes` and the bytes of
// Fragmentation.
struct MemoryInstant {
  int64_t event = -1;  // index into the device's trace; -1: the end state, without a trace
  int64_t time_us = 0;
  double seconds = 0;  // since the first event; 0 when times are unknown
  int64_t allocated_bytes = 0;
  int64_t reserved_bytes = 0;
  int64_t allocations = 0;
  std::array<int64_t, kMemoryClasses> by_class{};
  std::vector<MemoryHolder> holders;        // by code line, largest first, at most 20
  std::vector<MemoryHolder> stack_holders;  // by whole stack, largest first, at most 20
};

// The reserved memory that no tensor uses.
struct Fragmentation {
  int64_t reserved_bytes = 0;
  int64_t allocated_bytes = 0;  // of blocks, with their rounding
  int64_t rounding_bytes = 0;   // given beyond the requested size; exact at the end, else estimated from neighbours
  int64_t inactive_bytes = 0;
  int64_t inactive_blocks = 0;
  int64_t largest_inactive = 0;
  int64_t releasable_bytes = 0;    // in segments (or pages of expandable ones) without any tensor: returned when needed
  int64_t private_pool_bytes = 0;  // reserved in pools of CUDA graphs or MemPool
  int64_t other_stream_bytes = 0;  // inactive, but usable only by other streams than the request's
  int64_t pending_free_bytes = 0;  // freed, waiting for another stream
  int64_t expandable_bytes = 0;    // reserved in expandable segments
  int64_t request_bytes = 0;       // the request for the next two fields; 0: none
  int64_t usable_bytes = 0;        // inactive blocks that can serve it
  int64_t unusable_bytes = 0;      // inactive, not releasable: too small, or of other streams and pools
};

// A request that the allocator could not serve.
struct OutOfMemoryEvent {
  int64_t event = 0;
  double seconds = 0;
  int64_t requested_bytes = 0;  // rounded by the allocator
  int64_t device_free_bytes = 0;
  int64_t allocated_bytes = 0;
  int64_t reserved_bytes = 0;
  std::string place;
  MemoryClass kind = MemoryClass::unknown;
};

// Whether the memory alive between steps grows.
struct AliveGrowth {
  std::string unit;           // "optimizer step", "window of 1/16 of the trace"; empty: there are too few
  std::vector<int64_t> lows;  // the least allocated bytes of each unit, in order
  bool grows = false;
  int64_t bytes_per_unit = 0;         // median difference between consecutive units
  std::vector<MemoryHolder> holders;  // allocated after the first quarter and never freed, largest first, at most 8
};

// One column of the timeline: the moment in it with the most allocated bytes, and its most reserved bytes.
struct TimelineColumn {
  int64_t first_event = 0;  // the column ends at the next one's first event
  int64_t allocated_bytes = 0;
  int64_t reserved_bytes = 0;
  double seconds = 0;  // at first_event
  std::array<int64_t, kMemoryClasses> by_class{};
};

struct DeviceAnalysis {
  int64_t device = 0;
  int64_t events = 0;
  double seconds = 0;              // from first to last event
  bool complete_history = false;   // the trace starts before the first allocation
  int64_t allocations_before = 0;  // alive when the trace begins
  int64_t bytes_before = 0;
  int64_t unmatched_events = 0;  // frees of free memory, allocations over live ones: the trace is inconsistent
  MemoryInstant peak;            // of allocated bytes
  int64_t peak_reserved_bytes = 0;
  MemoryInstant end;
  Fragmentation end_fragmentation;       // for the request of the last out-of-memory event
  std::optional<MemoryInstant> failure;  // the last out-of-memory event
  std::optional<Fragmentation> failure_fragmentation;
  std::vector<OutOfMemoryEvent> failures;  // the last ones, at most 64
  int64_t failure_count = 0;
  AliveGrowth growth;
  std::vector<TimelineColumn> timeline;  // at most 720
};

struct SnapshotAnalysis {
  std::string source;
  AllocatorSettings settings;
  int64_t pinned_host_bytes = 0;
  bool has_trace = false;
  bool has_frames = false;
  std::vector<DeviceAnalysis> devices;  // those with segments or events
  std::vector<std::string> notes;       // limits of the analysis: lost history, no frames, inconsistent events
};

// Replays the events of each device. O(n log n) in events and blocks. Deterministic; a pure function; thread-safe.
SnapshotAnalysis analyse_snapshot(const Snapshot& snapshot);

// The memory of the end state that cannot serve another request of `request_bytes` on `stream` of `device`, in the pool
// {0, 0}.
Fragmentation fragmentation_for(const Snapshot& snapshot, int64_t device, int64_t request_bytes, int64_t stream = 0);

}  // namespace headroom::doctor
