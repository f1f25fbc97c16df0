// A matrix in blocks of codes, as kernels read it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/type.h"

namespace headroom {

class CodedMatrix {
 public:
  // `data`: codes, then scales, as storage_layout() says of so many elements.
  CodedMatrix(const void* data, const Storage& storage, int64_t elements);

  // Elements first .. first + count, in row-major order. Thread-safe; no heap call.
  void read(int64_t first, int64_t count, float* to) const;

  const uint8_t* codes() const { return data_; }
  const Storage& storage() const { return storage_; }
  float scale_of(int64_t block) const;
  // Those of all blocks; nullptr where the scales are in codes themselves.
  const float* scales() const {
    return storage_.scale_block == 0 ? reinterpret_cast<const float*>(data_ + layout_.scales) : nullptr;
  }

 private:
  Storage storage_;
  StorageLayout layout_;
  const uint8_t* data_;
};

}  // namespace headroom
