// Device code of the gradient norm and of an update's scalars.
#include "ops/reduce/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"
#include "ops/reduce/cuda_scratch.h"
#include "ops/step_scalars.h"

namespace headroom::cuda {

constexpr int kSumThreads = 256;

// Stores the sum of all squares, or adds it to the accumulator.
struct SquaresTotal {
  double* acc;
  bool first;
  HR_DEVICE void take(double sum) const { *acc = (first ? 0.0 : *acc) + sum; }
};

// Each block sums a fixed chunk; four sums per thread hide the latency of f64. The sum of a single chunk is the total.
__global__ void sum_squares(const float* x, int64_t count, double* sums, SquaresTotal total) {
  __shared__ double slots[kWarp];
  constexpr int N = 4;
  const int64_t begin = blockIdx.x * kCudaSumChunk;
  const int64_t end = begin + kCudaSumChunk < count ? begin + kCudaSumChunk : count;
  double own[N] = {0, 0, 0, 0};
  int64_t i = begin + threadIdx.x * N;
  for (; i + N <= end; i += kSumThreads * N) {
    const Pack<float, N> pack = *reinterpret_cast<const Pack<float, N>*>(x + i);
    HR_UNROLL for (int j = 0; j < N; ++j) own[j] += static_cast<double>(pack.at[j]) * static_cast<double>(pack.at[j]);
  }
  for (; i < end; ++i) own[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const double sum = reduce_block((own[0] + own[1]) + (own[2] + own[3]), slots, 0.0, Sum());
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1)
    total.take(sum);
  else
    sums[blockIdx.x] = sum;
}

__global__ void join_squares(const double* sums, int64_t chunks, SquaresTotal total) {
  __shared__ double slots[kWarp];
  double own = 0;
  for (int64_t i = threadIdx.x; i < chunks; i += kSumThreads) own += sums[i];
  const double sum = reduce_block(own, slots, 0.0, Sum());
  if (threadIdx.x == 0) total.take(sum);
}

// `scaled`: the gradients are those of a scaled loss; without clipping, too, a norm that is not finite gives NaN.
__global__ void clip_coefficient(const double* squares, const float* hyper, bool scaled, float* y) {
  const float most = hyper[kMaxGradNorm], unscale = scaled ? hyper[kUnscale] : 1.0f;
  const float norm = static_cast<float>(sqrt(*squares)) * unscale;
  const bool finite = fabsf(norm) <= 3.402823466e38f;
  const float coefficient = finite ? most / (norm + 1e-6f) : __uint_as_float(0x7fc00000u);
  const bool whole = most == 0.0f && (finite || !scaled);
  *y = whole || coefficient > 1.0f ? unscale : coefficient * unscale;
}

__global__ void loss_scale(const float* hyper, float* y) { *y = hyper[kLossScale]; }

#ifndef __CUDACC_RTC__
void launch_sum_squares(const float* x, int64_t count, double* sums, bool first, double* acc, CudaStream stream) {
  Grid grid;
  grid.x = cuda_sum_chunks(count);
  grid.block = kSumThreads;
  const SquaresTotal total{acc, first};
  launch(sum_squares, grid, stream, x, count, sums, total);
  if (grid.x == 1) return;
  grid.x = 1;
  launch(join_squares, grid, stream, sums, cuda_sum_chunks(count), total);
}

void launch_clip_coefficient(const double* squares, const float* hyper, bool scaled, float* y, CudaStream stream) {
  launch(clip_coefficient, Grid{1, 1, 1, 1, 0}, stream, squares, hyper, scaled, y);
}

void launch_loss_scale(const float* hyper, float* y, CudaStream stream) {
  launch(loss_scale, Grid{1, 1, 1, 1, 0}, stream, hyper, y);
}
#endif

}  // namespace headroom::cuda
