// The bytes of a row of a data file of any length, through a window of fixed size.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "formats/file.h"

namespace headroom {

// Used by one thread. Its arguments outlive it.
class RowBytes {
 public:
  // The largest `least` of from().
  static constexpr int64_t kMostAtOnce = 64;

  RowBytes() = default;
  // A row that is in memory.
  explicit RowBytes(std::string_view bytes) : held_(bytes), size_(static_cast<int64_t>(bytes.size())) {}
  // `size` bytes of a file, read into `window` (at least kMostAtOnce bytes) on demand.
  RowBytes(const File& file, int64_t offset, int64_t size, std::span<char> window)
      : file_(&file), offset_(offset), size_(size), window_(window) {}

  int64_t size() const { return size_; }

  // The bytes in memory from `at` on, at least `least` of them, fewer only at the row's end. Valid until the next call.
  // Throws Error(format) if the file has become shorter, Error(run) on an I/O error.
  std::string_view from(int64_t at, int64_t least = 1) const;

 private:
  const File* file_ = nullptr;  // null: the row is in memory
  int64_t offset_ = 0;          // of the row in the file
  mutable std::string_view held_;
  mutable int64_t held_at_ = 0;  // of the bytes in memory, in the row
  int64_t size_ = 0;
  std::span<char> window_;
};

}  // namespace headroom
