// Rows dealt to groups of threads (ops/cuda/rows_scratch.h) and sums over such a group.
#pragma once

#include "ops/cuda/elements.cuh"
#include "ops/cuda/reduce.cuh"
#include "ops/cuda/rows_scratch.h"
#ifndef __CUDACC_RTC__
#include "ops/cuda/launch.h"
#endif

namespace headroom::cuda {

// Where a thread stands when groups of `lanes` threads of its block treat a row each.
struct RowGroup {
  int index;  // among the block's groups
  int count;  // of groups in the block
  int lane;
};

HR_DEVICE RowGroup row_group(int lanes) {
  const int thread = static_cast<int>(threadIdx.x);
  return {thread / lanes, static_cast<int>(blockDim.x) / lanes, thread % lanes};
}

// The K sums over a group; every thread gets them, and all threads of the block take part. `slots` is shared memory for
// 32 K floats, which another call may use after one barrier: callers in a loop alternate between two.
template <int K>
HR_DEVICE Floats<K> sum_over_group(Floats<K> x, int lanes, float* slots) {
  if (lanes <= kWarp) {
    for (int distance = lanes / 2; distance > 0; distance /= 2)
      HR_UNROLL for (int k = 0; k < K; ++k) x.at[k] += __shfl_xor_sync(kAllLanes, x.at[k], distance);
    return x;
  }
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  HR_UNROLL for (int k = 0; k < K; ++k) x.at[k] = reduce_warp(x.at[k], Sum());
  if (lane == 0) HR_UNROLL for (int k = 0; k < K; ++k) slots[k * kWarp + warp] = x.at[k];
  __syncthreads();
  HR_UNROLL for (int k = 0; k < K; ++k) x.at[k] =
      reduce_warp(lane < static_cast<int>(blockDim.x) / kWarp ? slots[k * kWarp + lane] : 0.0f, Sum());
  return x;
}

#ifndef __CUDACC_RTC__
// A group of threads for each row.
inline Grid row_grid(int64_t rows, int64_t width) {
  Grid grid;
  grid.block = row_block(width);
  const int64_t groups = grid.block / row_lanes(width);
  grid.x = (rows + groups - 1) / groups;
  return grid;
}
#endif

}  // namespace headroom::cuda
