// The independent check of offsets: shares no code with what assigns them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "memory/buffer.h"

namespace headroom {

// Says what is wrong with an assignment, or nothing if it is sound: one offset per buffer, none negative, all multiples
// of the alignment, pins kept, no two live buffers overlapping, `peak` equal to the highest aligned end, and peak <=
// capacity when capacity > 0. Sweeps over time with the live buffers ordered by offset: O(n log n). Never throws for
// any content of its arguments; thread-safe.
std::optional<std::string> find_violation(std::span<const Buffer> buffers, const OffsetAssignment& assignment,
                                          int64_t alignment, int64_t capacity = 0);

}  // namespace headroom
