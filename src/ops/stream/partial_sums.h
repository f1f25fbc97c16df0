// Sums over rows, kept per chunk of rows in scratch and joined in chunk order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/stream/row_chunks.h"

namespace headroom {

// `vectors` partial sums of `width` floats for every chunk, laid out as partial_sum_bytes books them.
class PartialSums {
 public:
  // Throws InternalError if `scratch` is smaller than partial_sum_bytes(dims, vectors).
  PartialSums(std::span<std::byte> scratch, std::span<const int64_t> dims, int64_t vectors);

  float* at(int64_t chunk, int64_t vector) const { return base_ + (chunk * vectors_ + vector) * stride_; }

  // acc[j] = (overwrite ? 0 : acc[j]) + the chunks' sums of `vector` in chunk order. Runs on the team.
  void join(int64_t vector, bool overwrite, float* acc) const;

 private:
  float* base_;
  int64_t chunks_;
  int64_t vectors_;
  int64_t width_;
  int64_t stride_;  // floats
};

}  // namespace headroom
