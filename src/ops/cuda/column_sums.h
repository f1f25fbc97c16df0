// The last step of sums over all rows.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// acc[j] = (overwrite ? 0 : acc[j]) + sum over c of partial[c * stride + j], in f32, for j < width and c < count. The
// order depends only on count.
void launch_column_sums(const float* partial, int64_t count, int64_t stride, int64_t width, bool overwrite, float* acc,
                        CudaStream stream);

}  // namespace headroom::cuda
