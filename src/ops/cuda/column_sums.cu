// Device code of the last step of sums over all rows.
#include "ops/cuda/column_sums.h"

#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

constexpr int kColumnWarps = 16;

// Each block adds 32 columns; warp w takes the rows w, w + 16, ..., so that each read of a warp is 128 consecutive
// bytes.
__global__ void column_sums(const float* partial, int64_t count, int64_t stride, int64_t width, bool overwrite,
                            float* acc) {
  __shared__ float sums[kColumnWarps][kWarp];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t column = int64_t{blockIdx.x} * kWarp + lane;
  float sum = 0;
  if (column < width)
    for (int64_t row = warp; row < count; row += kColumnWarps) sum += partial[row * stride + column];
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= width) return;
  sum = sums[0][lane];
  for (int w = 1; w < kColumnWarps; ++w) sum += sums[w][lane];
  acc[column] = (overwrite ? 0.0f : acc[column]) + sum;
}

#ifndef __CUDACC_RTC__
void launch_column_sums(const float* partial, int64_t count, int64_t stride, int64_t width, bool overwrite, float* acc,
                        CudaStream stream) {
  Grid grid;
  grid.x = (width + kWarp - 1) / kWarp;
  grid.block = kColumnWarps * kWarp;
  launch(column_sums, grid, stream, partial, count, stride, width, overwrite, acc);
}
#endif

}  // namespace headroom::cuda
