// Which number draws a token's label: the same for any division of the batch.
#pragma once

#include <cstdint>

#include "base/counter_random.h"

namespace headroom {

// The operation's part of the key of its draws (step_key() of ops/stream/counter_bits.h).
inline constexpr uint64_t kDrawnLabelKey = hash_text("draw_labels");

// The index of the draw at position `position` of row `row` of the global batch, for counter_bits().
constexpr uint64_t draw_index(int64_t row, int64_t position) {
  return static_cast<uint64_t>(row) << 32 | static_cast<uint64_t>(position);
}

// Random bits as a number in (0, 1).
constexpr double open_unit_interval(uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

}  // namespace headroom
