// The conversion on the device, for kernels of other ops.
#pragma once

#include "ops/elementwise/cuda_kernels.h"

namespace headroom::cuda {

// y = x, rounded to nearest even; `count` elements.
inline void launch_cast(FloatType x_type, FloatType y_type, const void* x, void* y, int64_t count, int multiprocessors,
                        CudaStream stream) {
  ElementwiseOperands operands;
  operands.in[0] = x;
  operands.out[0] = y;
  operands.count = count;
  launch_elementwise(Formula::copy, x_type, y_type, 1, operands, multiprocessors, stream);
}

}  // namespace headroom::cuda
