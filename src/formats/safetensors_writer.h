// Writes a safetensors file in one pass with bounded memory: declare all tensors, then stream their bytes in the same
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/stored_type.h"
#include "formats/streamed_file.h"

namespace headroom {

// Used by one thread. Like StreamedFile, the file has a temporary name until finish().
class SafetensorsWriter {
 public:
  // Creates the temporary file. Throws Error(run) if it cannot.
  explicit SafetensorsWriter(const std::filesystem::path& path) : file_(path) {}

  // Announces the next tensor. All declarations come before the first write(); names are unique. In files with several
  // types declare wider types first, so that each tensor starts at a multiple of its element size.
  void declare(std::string name, StoredType type, std::vector<int64_t> shape);

  // Appends bytes to tensor `name`, which must be the first declared one that is not complete. The first call writes
  // the header (metadata {"format": "pt"}, padded so that the data starts at a multiple of 8). No heap allocation from
  // the second call on. Throws like StreamedFile::append.
  void write(std::string_view name, std::span<const std::byte> chunk);

  // Completes the file; all declared bytes must have been written. Throws like StreamedFile::finish.
  void finish();

  // Size of the whole file in bytes, including the header; valid once all tensors are declared.
  int64_t file_bytes() const;

 private:
  struct Declared {
    std::string name;
    StoredType type;
    std::vector<int64_t> shape;
    int64_t bytes;
  };
  // Passes the header to `piece` in parts, with its padding; returns its length.
  int64_t each_piece(const std::function<void(std::string_view)>& piece) const;
  void begin();

  StreamedFile file_;
  std::deque<Declared> declared_;  // a deque does not move its elements when it grows
  size_t current_ = 0;             // the tensor being written
  int64_t current_bytes_ = 0;      // bytes of it written so far
  bool begun_ = false;
};

}  // namespace headroom
