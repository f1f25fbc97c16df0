#include "doctor/snapshot/fragmentation.h"

#include <algorithm>

namespace headroom::doctor {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kBlockUnit = 512;
constexpr int64_t kLargestUnsplit = kMiB;  // a remainder up to this size stays with a block of the large pool
constexpr int64_t kSmallPage = 2 * kMiB;   // pages of expandable segments
constexpr int64_t kLargePage = 20 * kMiB;
constexpr int64_t kSmallRequest = kMiB;  // up to this size, blocks come from the small pool

struct Gap {
  int64_t begin = 0, end = 0;
};

// Adds up ranges one by one.
class FragmentCounter {
 public:
  explicit FragmentCounter(BlockRequest request) : request_(request) { out_.request_bytes = request.bytes; }

  void add(const ReservedRange& range, const std::vector<Gap>& gaps) {
    const int64_t size = range.end - range.begin;
    out_.reserved_bytes += size;
    if (range.expandable) out_.expandable_bytes += size;
    if (range.pool != PoolId{0, 0}) out_.private_pool_bytes += size;
    for (const Gap& gap : gaps) add_gap(range, gap);
  }

  void add_block(int64_t given, int64_t asked, bool pending) {
    out_.allocated_bytes += given;
    out_.rounding_bytes += std::max<int64_t>(0, given - asked);
    if (pending) out_.pending_free_bytes += given;
  }

  const Fragmentation& result() const { return out_; }

 private:
  void add_gap(const ReservedRange& range, const Gap& gap) {
    const int64_t size = gap.end - gap.begin;
    const int64_t releasable = releasable_of(range, gap);
    out_.inactive_bytes += size;
    out_.inactive_blocks += 1;
    out_.largest_inactive = std::max(out_.largest_inactive, size);
    out_.releasable_bytes += releasable;
    if (request_.bytes == 0) return;
    const bool same_stream = range.stream == request_.stream, default_pool = range.pool == PoolId{0, 0};
    if (!same_stream && default_pool) out_.other_stream_bytes += size;
    const bool right_pool = default_pool && range.large == (request_.bytes > kSmallRequest);
    if (same_stream && right_pool && size >= request_.bytes) {
      out_.usable_bytes += size;
    } else {
      out_.unusable_bytes += size - releasable;
    }
  }

  // The allocator returns empty segments, and whole pages of expandable ones, before it fails; those of graphs only
  // together with their graph.
  static int64_t releasable_of(const ReservedRange& range, const Gap& gap) {
    if (range.pool != PoolId{0, 0}) return 0;
    if (gap.begin == range.begin && gap.end == range.end) return gap.end - gap.begin;
    if (!range.expandable) return 0;
    const int64_t page = range.large ? kLargePage : kSmallPage;
    const int64_t first = (gap.begin - range.begin + page - 1) / page, last = (gap.end - range.begin) / page;
    return std::max<int64_t>(0, last - first) * page;
  }

  BlockRequest request_;
  Fragmentation out_;
};

ReservedRange range_of(const Segment& segment) {
  return {segment.address,   segment.address + segment.total_size, segment.stream, segment.pool, segment.large,
          segment.expandable};
}

int64_t rounded(int64_t size) { return std::max<int64_t>(1, (size + kBlockUnit - 1) / kBlockUnit) * kBlockUnit; }

// Adds the blocks of `range` after `event`, starting at blocks[at]; returns the index of the first block beyond it.
size_t add_range(const DeviceReplay& replay, int32_t event, const ReservedRange& range,
                 const std::vector<const Allocation*>& blocks, size_t at, FragmentCounter& counter) {
  std::vector<Gap> gaps;
  int64_t free_from = range.begin;
  while (at < blocks.size() && blocks[at]->address < range.begin) ++at;
  for (; at < blocks.size() && blocks[at]->address < range.end; ++at) {
    const Allocation& block = *blocks[at];
    if (block.address > free_from) gaps.push_back({free_from, block.address});
    const int64_t next = at + 1 < blocks.size() ? std::min(blocks[at + 1]->address, range.end) : range.end;
    int64_t given = block.block_size > 0 ? block.block_size : rounded(block.size);
    const int64_t left = next - block.address - given;
    if (block.block_size == 0 && range.large && !range.expandable && left > 0 && left <= kLargestUnsplit) given += left;
    given = std::min(given, next - block.address);
    counter.add_block(given, block.size, block.free_requested <= event);
    free_from = block.address + given;
  }
  if (free_from < range.end) gaps.push_back({free_from, range.end});
  counter.add(range, gaps);
  return at;
}

}  // namespace

Fragmentation fragmentation_at_end(const Snapshot& snapshot, int64_t device, BlockRequest request) {
  FragmentCounter counter(request);
  std::vector<Gap> gaps;
  for (const Segment& segment : snapshot.segments) {
    if (segment.device != device) continue;
    gaps.clear();
    for (const Block& block : segment.blocks) {
      if (block.state == BlockState::inactive) {
        if (block.size > 0) gaps.push_back({block.address, block.address + block.size});
      } else {
        counter.add_block(block.size, block.requested_size, block.state == BlockState::pending_free);
      }
    }
    counter.add(range_of(segment), gaps);
  }
  return counter.result();
}

Fragmentation fragmentation_after(const DeviceReplay& replay, int32_t event, const ReservedRanges& reserved,
                                  BlockRequest request) {
  std::vector<const Allocation*> alive;
  for (const Allocation& allocation : replay.allocations)
    if (allocation.alive_after(event)) alive.push_back(&allocation);
  std::sort(alive.begin(), alive.end(), [](const Allocation* a, const Allocation* b) {
    return a->address != b->address ? a->address < b->address : a->begin < b->begin;
  });
  FragmentCounter counter(request);
  size_t at = 0;
  for (const auto& [begin, range] : reserved.ranges()) at = add_range(replay, event, range, alive, at, counter);
  return counter.result();
}

Fragmentation fragmentation_for(const Snapshot& snapshot, int64_t device, int64_t request_bytes, int64_t stream) {
  return fragmentation_at_end(snapshot, device, {request_bytes, stream});
}

}  // namespace headroom::doctor
