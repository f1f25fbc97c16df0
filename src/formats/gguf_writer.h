// Writes a GGUF (version 3, alignment 32) in one pass: metadata and tensors are declared, then the tensors' bytes
// streamed in declared order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/ggml_blocks.h"
#include "formats/streamed_file.h"

namespace headroom {

// Used by one thread; temporary until finish(), like StreamedFile. Holds the metadata until the first write().
class GgufWriter {
 public:
  // Creates the temporary file. Throws Error(run) when it cannot.
  explicit GgufWriter(const std::filesystem::path& path) : file_(path) {}

  // Metadata, before the first write(). Keys are unique.
  void put(std::string_view key, uint32_t value);
  void put(std::string_view key, float value);
  void put(std::string_view key, bool value);
  void put(std::string_view key, std::string_view value);
  void put(std::string_view key, std::span<const std::string> values);
  void put(std::string_view key, std::span<const int32_t> values);
  void put(std::string_view key, std::span<const float> values);

  // Announces the next tensor; `shape` from the outermost dimension, rows of whole blocks.
  void declare(std::string name, GgmlType type, const std::vector<int64_t>& shape);
  // Appends bytes to tensor `name`, which is the first declared one that is not full. Throws as StreamedFile::append.
  void write(std::string_view name, std::span<const std::byte> chunk);
  // Requires that every declared byte has been written. Throws as StreamedFile::finish.
  void finish();

 private:
  struct Declared {
    std::string name;
    int64_t bytes = 0;
  };
  void entry(std::string_view key, uint32_t type, std::string_view bytes);
  void begin();
  // Pads to the alignment.
  void pad();

  StreamedFile file_;
  std::string entries_, tensors_;
  uint64_t entry_count_ = 0;
  std::vector<Declared> declared_;
  int64_t data_bytes_ = 0;
  size_t current_ = 0;         // the tensor being written
  int64_t current_bytes_ = 0;  // of it, written so far
  bool begun_ = false;
};

}  // namespace headroom
