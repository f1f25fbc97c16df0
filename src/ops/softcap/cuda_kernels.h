// Launchers of the soft cap's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// y = cap tanh(x / cap), `count` elements; y may be x.
void launch_softcap(FloatType type, float cap, const void* x, void* y, int64_t count, int multiprocessors,
                    CudaStream stream);

// dx = dy (1 - (y / cap)^2); dx may be y or dy.
void launch_softcap_grad(FloatType type, float cap, const void* y, const void* dy, void* dx, int64_t count,
                         int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
