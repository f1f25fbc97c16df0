// Unused memory between the blocks of the reserved memory.
#pragma once

#include <cstdint>
#include <vector>

#include "doctor/snapshot/device_replay.h"
#include "doctor/snapshot/reserved_ranges.h"
#include "doctor/snapshot/snapshot_analysis.h"

namespace headroom::doctor {

// A hypothetical request to the default pool. bytes 0: none, only the totals count.
struct BlockRequest {
  int64_t bytes = 0;
  int64_t stream = 0;
};

// At the end of the trace, exactly: from the snapshot's blocks.
Fragmentation fragmentation_at_end(const Snapshot& snapshot, int64_t device, BlockRequest request);

// After `event`: from the ranges reserved and the allocations alive then. A block's size is the requested size rounded
// up to 512 bytes. In a large segment a remainder of at most 1 MiB belongs to the block before it, because the
// allocator does not split it off (c10/cuda/CUDACachingAllocator.cpp, should_split).
Fragmentation fragmentation_after(const DeviceReplay& replay, int32_t event, const ReservedRanges& reserved,
                                  BlockRequest request);

}  // namespace headroom::doctor
