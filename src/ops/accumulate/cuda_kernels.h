// Launcher of the device code of accumulation.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// acc = (overwrite ? 0 : acc) + x for `count` elements of f32, or of f64 if `wide`.
void launch_accumulate(bool wide, bool overwrite, const void* x, void* acc, int64_t count, int multiprocessors,
                       CudaStream stream);

}  // namespace headroom::cuda
