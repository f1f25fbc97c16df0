// A region of memory, for prefetching.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom {

// Memory to prefetch while a tile is computed: `lines` cache lines of each row.
struct NearLines {
  const std::byte* at = nullptr;
  int64_t stride = 0;  // bytes between rows
  int64_t rows = 0;
  int64_t lines = 0;
  int64_t count() const { return rows * lines; }
};

}  // namespace headroom
