// Builds a GGUF piece by piece, valid or not.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf_header.h"

namespace headroom {

class GgufBytes {
 public:
  explicit GgufBytes(uint32_t version = 3) : version_(version) {}

  template <typename T>
  static std::string raw(T value) {
    std::string out(sizeof(T), '\0');
    std::memcpy(out.data(), &value, sizeof(T));
    return out;
  }
  static std::string text(std::string_view value) { return raw<uint64_t>(value.size()) + std::string(value); }

  GgufBytes& entry(std::string_view key, uint32_t type, std::string_view bytes) {
    entries_ += text(key) + raw(type) + std::string(bytes);
    ++entry_count_;
    return *this;
  }
  GgufBytes& number(std::string_view key, uint32_t value) { return entry(key, 4, raw(value)); }
  GgufBytes& number(std::string_view key, float value) { return entry(key, 6, raw(value)); }
  GgufBytes& words(std::string_view key, std::string_view value) { return entry(key, 8, text(value)); }
  GgufBytes& list(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes = raw<uint32_t>(8) + raw<uint64_t>(values.size());
    for (const std::string& value : values) bytes += text(value);
    return entry(key, 9, bytes);
  }

  // Dimensions start with the innermost one; `data` follows the data of earlier tensors, padded to 32 bytes.
  GgufBytes& tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type, std::string_view data) {
    data_.resize((data_.size() + 31) / 32 * 32);
    tensor_at(name, dims, type, data_.size());
    data_ += data;
    return *this;
  }
  // Only an entry of the table.
  GgufBytes& tensor_at(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
    tensors_ += text(name) + raw(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) tensors_ += raw(dim);
    tensors_ += raw(type) + raw(offset);
    ++tensor_count_;
    return *this;
  }

  std::string file() const {
    std::string out = "GGUF" + raw(version_) + raw(tensor_count_) + raw(entry_count_) + entries_ + tensors_;
    if (tensor_count_ > 0) out.resize((out.size() + 31) / 32 * 32);
    return out + data_;
  }

  // `bytes` must outlive the source.
  static ByteSource source(const std::string& bytes) {
    return {static_cast<int64_t>(bytes.size()),
            [&bytes](int64_t offset, std::span<std::byte> into) {
              std::memcpy(into.data(), bytes.data() + offset, into.size());
            },
            "bytes"};
  }

 private:
  uint32_t version_;
  uint64_t tensor_count_ = 0, entry_count_ = 0;
  std::string entries_, tensors_, data_;
};

}  // namespace headroom
