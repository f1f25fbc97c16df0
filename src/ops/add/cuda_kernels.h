// Launchers of add's device code.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// y = a + b for `count` elements, aligned to 16 bytes.
void launch_add(FloatType type, const void* a, const void* b, void* y, int64_t count, int multiprocessors,
                CudaStream stream);

}  // namespace headroom::cuda
