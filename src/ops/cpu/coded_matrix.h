// A matrix in blocks of codes, as kernels read it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/type.h"

namespace headroom {

class CodedMatrix {
 public:
  // `data`: codes and scales of `elements` elements, in the layout of storage_layout().
  CodedMatrix(const void* data, const Storage& storage, int64_t elements);

  // Reads elements first .. first + count, in row-major order. Thread-safe; does not use the heap.
  void read(int64_t first, int64_t count, float* to) const;

  const uint8_t* codes() const { return data_; }
  const Storage& storage() const { return storage_; }
  float scale_of(int64_t block) const;
  // The scales of all blocks; nullptr if the scales are codes too.
  const float* scales() const {
    return storage_.scale_block == 0 ? reinterpret_cast<const float*>(data_ + layout_.scales) : nullptr;
  }

 private:
  Storage storage_;
  StorageLayout layout_;
  const uint8_t* data_;
};

}  // namespace headroom
