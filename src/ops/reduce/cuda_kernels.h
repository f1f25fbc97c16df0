// Launchers of the device code of the gradient norm and of an update's scalars.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// acc = (first ? 0 : acc) + sum of x^2 in f64; x f32[count], `sums` is scratch of sum_squares_cuda_scratch(count).
void launch_sum_squares(const float* x, int64_t count, double* sums, bool first, double* acc, CudaStream stream);

// y = 1 if `hyper` has no limit, else min(1, limit / (norm + 1e-6)); NaN when the norm is not finite.
void launch_clip_coefficient(const double* squares, const float* hyper, bool scaled, float* y, CudaStream stream);

// y = the loss scale of `hyper`.
void launch_loss_scale(const float* hyper, float* y, CudaStream stream);

}  // namespace headroom::cuda
