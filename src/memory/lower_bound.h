// The bytes that no assignment of offsets can go below.
#pragma once

#include <cstdint>
#include <span>

#include "memory/buffer.h"

namespace headroom {

// The largest sum of aligned sizes live in one slot; 0 for no buffers. `peak_slot` receives the first slot that reaches
// it (0 for no buffers). Pins are ignored. O(n log n), thread-safe.
// Throws Error(usage) for a buffer that assign_offsets() refuses (offset_assignment.h).
int64_t lower_bound(std::span<const Buffer> buffers, int64_t alignment, int64_t* peak_slot = nullptr);

}  // namespace headroom
