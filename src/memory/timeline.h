// Validated buffers with slots renumbered 0..slot_count-1, the form that every stage of the assignment works on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/buffer.h"

namespace headroom {

// A buffer of a timeline: live on the dense slots [lower, upper), `size` is a multiple of the alignment.
struct TimelineItem {
  int32_t lower = 0;
  int32_t upper = 0;
  int64_t size = 0;
  int64_t pinned_offset = -1;
};

struct Timeline {
  std::vector<TimelineItem> items;   // parallel to the buffers
  std::vector<int64_t> slot_starts;  // first original slot of each dense slot, ascending
  bool has_pins = false;

  int32_t slot_count() const { return static_cast<int32_t>(slot_starts.size()); }
};

// Validates the buffers and renumbers their slots: the dense slots are cut where a buffer begins or ends.
// Throws Error(usage) as stated for assign_offsets(), except for overlapping pins.
Timeline make_timeline(std::span<const Buffer> buffers, int64_t alignment);

// Bytes live in each dense slot.
std::vector<int64_t> live_bytes(const Timeline& timeline);

}  // namespace headroom
