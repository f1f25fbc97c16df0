// The replay against a naive one, on random traces whose oldest events are missing.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "doctor/snapshot/device_replay.h"
#include "doctor/snapshot/fragmentation.h"
#include "doctor/snapshot/reserved_ranges.h"
#include "doctor/snapshot/snapshot_analysis.h"
#include "doctor/snapshot/timeline.h"

namespace headroom::doctor {
namespace {

constexpr int64_t kMiB = 1 << 20;

struct Live {
  int64_t size = 0;
  bool pending = false;
};

// Random allocations of 4 MiB in segments of 40 MiB, with the true state after each event.
class RandomTrace {
 public:
  explicit RandomTrace(uint32_t seed) : random_(seed) {}

  void run(int events) {
    while (static_cast<int>(trace.size()) < events) {
      const uint32_t what = random_() % 8;
      if (what < 4 || live.empty()) {
        allocate();
      } else if (what < 7) {
        free();
      } else {
        release();
      }
    }
  }

  // The snapshot of a trace that kept the events from `first` on.
  Snapshot snapshot(size_t first) const {
    Snapshot out;
    out.device_traces = {{trace.begin() + static_cast<std::ptrdiff_t>(first), trace.end()}};
    out.streams = {0};
    out.has_trace = true;
    for (const int64_t base : segments) {
      Segment segment;
      segment.address = base;
      segment.total_size = kSegment;
      for (int64_t at = base; at < base + kSegment; at += kBlock) {
        Block block;
        block.address = at;
        block.size = kBlock;
        if (const auto found = live.find(at); found != live.end()) {
          block.requested_size = found->second.size;
          block.state = found->second.pending ? BlockState::pending_free : BlockState::allocated;
        }
        segment.blocks.push_back(block);
      }
      out.segments.push_back(segment);
    }
    return out;
  }

  static constexpr int64_t kSegment = 40 * kMiB, kBlock = 4 * kMiB;
  std::vector<TraceEvent> trace;
  std::vector<int64_t> allocated, reserved, blocks;
  std::map<int64_t, Live> live;
  std::vector<int64_t> segments;

 private:
  void record(TraceAction action, int64_t address, int64_t size) {
    TraceEvent event;
    event.action = action;
    event.address = address;
    event.size = size;
    trace.push_back(event);
    int64_t sum = 0;
    for (const auto& [at, block] : live) sum += block.size;
    allocated.push_back(sum);
    blocks.push_back(static_cast<int64_t>(live.size()));
    reserved.push_back(static_cast<int64_t>(segments.size()) * kSegment);
  }

  void allocate() {
    for (const int64_t base : segments)
      for (int64_t at = base; at < base + kSegment; at += kBlock)
        if (live.count(at) == 0) {
          live[at].size = 3 * kMiB + 1 + random_() % kMiB;
          return record(TraceAction::alloc, at, live[at].size);
        }
    segments.push_back(next_);
    next_ += kSegment;
    record(TraceAction::segment_alloc, segments.back(), kSegment);
  }

  void free() {
    auto at = live.begin();
    std::advance(at, random_() % live.size());
    const auto [address, block] = *at;
    if (!block.pending) {
      at->second.pending = true;
      record(TraceAction::free_requested, address, block.size);
      if (random_() % 4 == 0) return;  // another stream uses it
    }
    live.erase(address);
    record(TraceAction::free_completed, address, block.size);
  }

  void release() {
    for (size_t i = 0; i < segments.size(); ++i) {
      const auto first = live.lower_bound(segments[i]);
      if (first != live.end() && first->first < segments[i] + kSegment) continue;
      const int64_t base = segments[i];
      segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(i));
      return record(TraceAction::segment_free, base, kSegment);
    }
  }

  std::mt19937 random_;
  int64_t next_ = int64_t{1} << 40;
};

TEST(Replay, AgreesWithEveryStateOfARandomTrace) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    RandomTrace random(seed);
    random.run(400);
    for (const size_t first : {size_t{0}, size_t{1}, size_t{150}, size_t{399}}) {
      const Snapshot snapshot = random.snapshot(first);
      const DeviceReplay replay = replay_device(snapshot, 0, classify_stacks(snapshot.stacks));
      const Timeline timeline = timeline_of(replay);
      EXPECT_EQ(replay.unmatched_events, 0);
      ASSERT_EQ(timeline.allocated.size(), random.trace.size() - first);
      for (size_t i = 0; i < timeline.allocated.size(); ++i) {
        ASSERT_EQ(timeline.allocated[i], random.allocated[first + i]) << seed << " event " << first + i;
        ASSERT_EQ(timeline.reserved[i], random.reserved[first + i]) << seed << " event " << first + i;
      }
      if (first > 0) {
        EXPECT_EQ(replay.bytes_before, random.allocated[first - 1]);
        EXPECT_EQ(replay.reserved_before, random.reserved[first - 1]);
      }
    }
  }
}

TEST(Replay, ReservedRangesGoBackToEveryState) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    RandomTrace random(seed);
    random.run(300);
    const Snapshot snapshot = random.snapshot(0);
    const DeviceReplay replay = replay_device(snapshot, 0, classify_stacks(snapshot.stacks));
    ReservedRanges ranges(snapshot, 0);
    for (int32_t i = replay.events() - 1; i >= 0; --i) {
      const Fragmentation f = fragmentation_after(replay, i, ranges, {});
      const auto at = static_cast<size_t>(i);
      ASSERT_EQ(f.reserved_bytes, random.reserved[at]) << seed << " event " << i;
      ASSERT_EQ(f.allocated_bytes - f.rounding_bytes, random.allocated[at]) << seed << " event " << i;
      ASSERT_EQ(f.inactive_bytes, f.reserved_bytes - f.allocated_bytes);
      // The remainder of a block counts as unused only next to a free block, where the two cannot be distinguished.
      const int64_t blocks = random.blocks[at], unused = f.reserved_bytes - blocks * RandomTrace::kBlock;
      ASSERT_GE(f.inactive_bytes, unused);
      ASSERT_LE(f.inactive_bytes, unused + blocks * kMiB);
      ranges.undo(random.trace[at]);
    }
    EXPECT_TRUE(ranges.ranges().empty());
  }
}

TraceEvent event_of(TraceAction action, int64_t address, int64_t size) {
  TraceEvent event;
  event.action = action;
  event.address = address;
  event.size = size;
  return event;
}

Snapshot snapshot_of(std::vector<TraceEvent> trace) {
  Snapshot out;
  out.device_traces = {std::move(trace)};
  out.streams = {0};
  out.has_trace = true;
  return out;
}

TEST(Replay, InconsistentEventsAreCountedAndNeverGoBelowZero) {
  const Snapshot snapshot = snapshot_of({
      event_of(TraceAction::alloc, 100, 10), event_of(TraceAction::alloc, 100, 20),  // its free was skipped
      event_of(TraceAction::free_completed, 100, 20), event_of(TraceAction::free_completed, 100, 20),  // twice
      event_of(TraceAction::segment_free, 0, 1000),  // of a segment from before the trace
  });
  const DeviceReplay replay = replay_device(snapshot, 0, classify_stacks(snapshot.stacks));
  const Timeline timeline = timeline_of(replay);
  EXPECT_EQ(replay.unmatched_events, 2);
  EXPECT_EQ(timeline.allocated, (std::vector<int64_t>{10, 20, 0, 0, 0}));
  EXPECT_EQ(timeline.reserved, (std::vector<int64_t>{1000, 1000, 1000, 1000, 0}));
  EXPECT_EQ(analyse_snapshot(snapshot).notes.size(), 2u);  // the other note: no stacks
}

TEST(Replay, RequestsCountAsFreesWhereCompletionsWereSkipped) {
  const Snapshot snapshot =
      snapshot_of({event_of(TraceAction::alloc, 100, 10), event_of(TraceAction::free_requested, 100, 10)});
  const DeviceReplay replay = replay_device(snapshot, 0, classify_stacks(snapshot.stacks));
  EXPECT_EQ(timeline_of(replay).allocated, (std::vector<int64_t>{10, 0}));
}

TEST(Replay, PartsOfExpandableSegmentsComeAndGo) {
  Snapshot snapshot = snapshot_of({
      event_of(TraceAction::segment_map, 0, 100 * kMiB),
      event_of(TraceAction::segment_unmap, 40 * kMiB, 20 * kMiB),
      event_of(TraceAction::segment_unmap, 60 * kMiB, 40 * kMiB),
  });
  Segment left;
  left.total_size = 40 * kMiB;
  left.expandable = true;
  snapshot.segments = {left};
  ReservedRanges ranges(snapshot, 0);
  const auto& trace = snapshot.device_traces[0];
  ranges.undo(trace[2]);
  ASSERT_EQ(ranges.ranges().size(), 2u);
  ranges.undo(trace[1]);
  ASSERT_EQ(ranges.ranges().size(), 1u);
  EXPECT_EQ(ranges.ranges().begin()->second.end, 100 * kMiB);
  ranges.undo(trace[0]);
  EXPECT_TRUE(ranges.ranges().empty());
}

}  // namespace
}  // namespace headroom::doctor
