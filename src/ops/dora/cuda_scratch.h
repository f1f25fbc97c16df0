// Scratch of the CUDA kernel of the magnitude's gradient.
#pragma once

#include "ops/cuda/rows_scratch.h"
#include "ops/dora/shape.h"

namespace headroom {

inline int64_t magnitude_grad_cuda_scratch(const ConcreteType& z) {
  const std::array<int64_t, 3> rows = magnitude_rows(z);
  return cuda::row_sums_bytes(rows[0] * rows[1], rows[2], 1);
}

}  // namespace headroom
