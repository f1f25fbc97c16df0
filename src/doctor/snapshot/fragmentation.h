// What lies unused between the blocks of the reserved memory.
#pragma once

#include <cstdint>
#include <vector>

#include "doctor/snapshot/device_replay.h"
#include "doctor/snapshot/reserved_ranges.h"
#include "doctor/snapshot/snapshot_analysis.h"

namespace headroom::doctor {

// What the allocator would be asked for, in the default pool. bytes 0: nothing, only the totals count.
struct BlockRequest {
  int64_t bytes = 0;
  int64_t stream = 0;
};

// Of the end state, exact: from the snapshot's blocks.
Fragmentation fragmentation_at_end(const Snapshot& snapshot, int64_t device, BlockRequest request);

// After `event`: from the ranges reserved then and the allocations alive then. Blocks are taken as the size asked for
// rounded up to 512 bytes; what is left of a large segment behind one, if at most 1 MiB, belongs to the block, because
// the allocator splits no such remainder off (c10/cuda/CUDACachingAllocator.cpp, should_split).
Fragmentation fragmentation_after(const DeviceReplay& replay, int32_t event, const ReservedRanges& reserved,
                                  BlockRequest request);

}  // namespace headroom::doctor
