// Prefetches memory that a kernel is about to read or write, row by row while it computes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom {

// Rows of `bytes` bytes, `stride` bytes apart. Only a hint: rows that are left out cost time but change nothing.
class RowsAhead {
 public:
  RowsAhead() = default;
  RowsAhead(const void* first, int64_t stride, int64_t rows, int64_t bytes)
      : next_(static_cast<const std::byte*>(first)), stride_(stride), left_(rows), bytes_(bytes) {}

  void bring_row() {
    if (left_ == 0) return;
    for (int64_t byte = 0; byte < bytes_; byte += 64) __builtin_prefetch(next_ + byte, 0, 2);
    if (--left_ > 0) next_ += stride_;
  }

 private:
  const std::byte* next_ = nullptr;
  int64_t stride_ = 0;
  int64_t left_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace headroom
