// Launcher of the conversion kernel on the device.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// y = x, rounded to nearest even; `count` elements.
void launch_cast(FloatType x_type, FloatType y_type, const void* x, void* y, int64_t count, int multiprocessors,
                 CudaStream stream);

}  // namespace headroom::cuda
