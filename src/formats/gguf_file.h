// A GGUF file: its header is checked; bytes and elements of its tensors are read on demand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "formats/file.h"
#include "formats/gguf_header.h"

namespace headroom {

// Whether a path names a file of this kind: its extension is .gguf.
bool is_gguf(const std::filesystem::path& path);

// The GGUF of a model: the path itself, or the only one in a directory without safetensors; empty if there is none.
// Throws Error(usage) for a directory with several, and for one part of a split model.
std::filesystem::path gguf_of_model(const std::filesystem::path& model);

// Reading is const and thread-safe.
class GgufFile {
 public:
  // Throws Error(usage) when it is missing, Error(format) as parse_gguf_header.
  static GgufFile open(const std::filesystem::path& path);
  // As SafetensorsFile::table_bytes.
  static int64_t table_bytes(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const GgufHeader& header() const { return header_; }
  // For arrays of the metadata; valid as long as this object.
  ByteSource source() const;

  // Calls body(block, first) for each block that contains one of a tensor's elements begin .. end, in order; `first` is
  // its first element. No heap allocation. The elements must be within the tensor.
  template <typename Body>
  void each_block(const GgufTensor& tensor, int64_t begin, int64_t end, const Body& body) const {
    std::byte buffer[16384];
    const GgmlBlock block = ggml_block(tensor.type);
    const int64_t most = static_cast<int64_t>(sizeof(buffer)) / block.bytes;
    const int64_t last = (end + block.elements - 1) / block.elements;
    for (int64_t at = begin / block.elements; at < last; at += most) {
      const int64_t count = std::min(most, last - at);
      read(tensor, at * block.bytes, std::span(buffer).first(static_cast<size_t>(count * block.bytes)));
      for (int64_t i = 0; i < count; ++i) body(buffer + i * block.bytes, (at + i) * block.elements);
    }
  }
  // The tensor's bytes from `offset`, as they are stored.
  void read(const GgufTensor& tensor, int64_t offset, std::span<std::byte> into) const;

 private:
  File file_;
  GgufHeader header_;
};

}  // namespace headroom
