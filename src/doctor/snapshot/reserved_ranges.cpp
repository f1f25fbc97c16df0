#include "doctor/snapshot/reserved_ranges.h"

namespace headroom::doctor {
namespace {

// Segments of the small pool are 2 MiB, those of the large pool at least 10 MiB (expandable: pages of 20 MiB).
constexpr int64_t kSmallSegment = int64_t{2} << 20;

}  // namespace

ReservedRanges::ReservedRanges(const Snapshot& snapshot, int64_t device) : snapshot_(snapshot) {
  for (const Segment& segment : snapshot.segments) {
    if (segment.device != device || segment.total_size == 0) continue;
    ReservedRange range{segment.address, segment.address + segment.total_size,
                        segment.stream,  segment.pool,
                        segment.large,   segment.expandable};
    remove(range.begin, range.end);
    ranges_[range.begin] = range;
  }
}

void ReservedRanges::undo(const TraceEvent& event) {
  if (event.size == 0) return;
  const int64_t begin = event.address, end = event.address + event.size;
  switch (event.action) {
    case TraceAction::segment_alloc:
    case TraceAction::segment_map:
      return remove(begin, end);
    case TraceAction::segment_free:
    case TraceAction::segment_unmap:
      return insert({begin, end, snapshot_.streams[event.stream], snapshot_.pools[event.pool],
                     event.size > kSmallSegment, event.action == TraceAction::segment_unmap});
    default:
      return;
  }
}

void ReservedRanges::remove(int64_t begin, int64_t end) {
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin()) --at;
  while (at != ranges_.end() && at->second.begin < end) {
    const ReservedRange range = at->second;
    if (range.end <= begin) {
      ++at;
      continue;
    }
    at = ranges_.erase(at);
    ReservedRange part = range;
    if (range.begin < begin) {
      part.end = begin;
      ranges_[part.begin] = part;
    }
    part.end = range.end;
    if (range.end > end) {
      part.begin = end;
      at = ranges_.emplace(end, part).first;
      ++at;
    }
  }
}

void ReservedRanges::insert(ReservedRange range) {
  remove(range.begin, range.end);
  if (range.expandable) {
    const auto fits = [&](const ReservedRange& other) { return other.expandable && other.stream == range.stream; };
    auto after = ranges_.find(range.end);
    if (after != ranges_.end() && fits(after->second)) {
      range.large = after->second.large;
      range.pool = after->second.pool;
      range.end = after->second.end;
      ranges_.erase(after);
    }
    auto before = ranges_.lower_bound(range.begin);
    if (before != ranges_.begin() && (--before)->second.end == range.begin && fits(before->second)) {
      before->second.end = range.end;
      return;
    }
  }
  ranges_[range.begin] = range;
}

}  // namespace headroom::doctor
