// Byte ranges with a lifetime, and the offsets that they are assigned.
#pragma once

#include <cstdint>
#include <vector>

namespace headroom {

// One storage of a timeline. Live on the op slots [lower, upper); two buffers conflict when their slots intersect.
// A buffer occupies `size` bytes rounded up to the alignment; a size of zero occupies nothing and conflicts with none.
struct Buffer {
  int64_t id = 0;
  int64_t lower = 0;
  int64_t upper = 0;
  int64_t size = 0;            // bytes, >= 0
  int64_t pinned_offset = -1;  // fixed offset in bytes (a multiple of the alignment), or -1
};

// Offsets in bytes, parallel to the buffers they were made for.
struct OffsetAssignment {
  std::vector<int64_t> offsets;
  int64_t peak = 0;  // highest offset + aligned size: the bytes an arena needs; a multiple of the alignment
};

}  // namespace headroom
