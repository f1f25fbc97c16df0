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
  float scale_of(int64_t block) const;

 private:
  Storage storage_;
  StorageLayout layout_;
  const uint8_t* data_;
};

}  // namespace headroom
