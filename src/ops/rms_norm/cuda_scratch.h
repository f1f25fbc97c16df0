// Scratch of the CUDA kernels of the RMS norm's gradient.
#pragma once

#include "ops/cuda/rows_scratch.h"
#include "ops/rms_norm/rows.h"

namespace headroom {

// Partial sums of dL/dw.
inline int64_t rms_norm_grad_cuda_scratch(const ConcreteType& x, const ConcreteType& w) {
  const std::array<int64_t, 3> rows = norm_rows(x, w);
  return cuda::row_sums_bytes(rows[0] * rows[1], rows[2], 1);
}

}  // namespace headroom
