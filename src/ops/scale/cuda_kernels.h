// Launcher of the device code of the product with a constant.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// y = factor x, `count` elements; y may be x.
void launch_scale(FloatType type, float factor, const void* x, void* y, int64_t count, int multiprocessors,
                  CudaStream stream);

}  // namespace headroom::cuda
