// Scratch of the CUDA kernels of the layer norm's gradient.
#pragma once

#include "ir/type.h"
#include "ops/cuda/rows_scratch.h"

namespace headroom {

// Partial sums of dL/dw and dL/db.
inline int64_t layer_norm_grad_cuda_scratch(const ConcreteType& x) {
  return cuda::row_sums_bytes(element_count(x.dims) / x.dims.back(), x.dims.back(), 2);
}

}  // namespace headroom
