// Launchers of the GELU's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// y = gelu(x), exact or by tanh, `count` elements; y may be x.
void launch_gelu(FloatType type, bool by_tanh, const void* x, void* y, int64_t count, int multiprocessors,
                 CudaStream stream);

// dx = dy gelu'(x); dx may be x or dy.
void launch_gelu_grad(FloatType type, bool by_tanh, const void* x, const void* dy, void* dx, int64_t count,
                      int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
