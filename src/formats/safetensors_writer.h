// Writes a safetensors file in one pass with bounded memory: declare every tensor, then stream their bytes in declared
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

// Used by one thread; temporary until finish(), as StreamedFile is.
class SafetensorsWriter {
 public:
  // Creates the temporary file. Throws Error(run) when it cannot.
  explicit SafetensorsWriter(const std::filesystem::path& path) : file_(path) {}

  // Announces the next tensor. All declarations come before the first write(); names are unique. Declare wider types
  // first where files mix types, so that each tensor starts at a multiple of its element size.
  void declare(std::string name, StoredType type, std::vector<int64_t> shape);

  // Appends bytes to tensor `name`, which is the first declared one that is not full. The first call writes the header
  // (metadata
  // {"format": "pt"}, padded so that the data starts at a multiple of 8). No heap allocation from the second call on.
  // Throws as StreamedFile::append.
  void write(std::string_view name, std::span<const std::byte> chunk);

  // Every byte declared has been written. Throws as StreamedFile::finish.
  void finish();

  // Size of the whole file in bytes, header included; valid once all tensors are declared.
  int64_t file_bytes() const;

 private:
  struct Declared {
    std::string name;
    StoredType type;
    std::vector<int64_t> shape;
    int64_t bytes;
  };
  // The header piece by piece, with its padding; returns its length.
  int64_t each_piece(const std::function<void(std::string_view)>& piece) const;
  void begin();

  StreamedFile file_;
  std::deque<Declared> declared_;  // which does not move what it has when it grows
  size_t current_ = 0;             // the tensor being written
  int64_t current_bytes_ = 0;      // of it, written so far
  bool begun_ = false;
};

}  // namespace headroom
