// Distributes rows to groups of threads (ops/cuda/rows_scratch.h), with sums over such a group.
#pragma once

#include "ops/cuda/elements.cuh"
#include "ops/cuda/reduce.cuh"
#include "ops/cuda/rows_scratch.h"
#ifndef __CUDACC_RTC__
#include "ops/cuda/launch.h"
#endif

namespace headroom::cuda {

// A thread's position when groups of `lanes` threads of its block process a row each.
struct RowGroup {
  int index;  // among the block's groups
  int count;  // of groups in the block
  int lane;
};

HR_DEVICE RowGroup row_group(int lanes) {
  const int thread = static_cast<int>(threadIdx.x);
  if (lanes > kWarp) return {0, 1, thread};
  const int shift = lanes == 8 ? 3 : lanes == 16 ? 4 : 5;
  return {thread >> shift, static_cast<int>(blockDim.x) >> shift, thread & (lanes - 1)};
}

// K sums over a group. Every thread gets them, and all threads of the block must take part. `slots` is shared memory
// for 32 K floats; it may be reused after one barrier, so callers in a loop alternate between two.
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

// Adds the groups' sums over rows in the order of the groups and stores the block's sums in to[width]. A thread holds
// runs lane, lane + lanes, ... of its columns. Columns beyond those in registers are not stored. `shared` has 16 floats
// per thread; a block with one group does not use it.
template <bool kWhole>
HR_DEVICE void store_group_sums(float* to, int64_t width, const RowGroup& group, int lanes, const Floats<kRowRun>* sums,
                                float* shared) {
  const int64_t first = group.lane * kRowRun, stride = int64_t{lanes} * kRowRun;
  if (group.count == 1) {
    HR_UNROLL for (int p = 0; p < kRowRuns; ++p) store_row<kWhole>(to, first + p * stride, width, sums[p]);
    return;
  }
  HR_UNROLL for (int p = 0; p < kRowRuns; ++p) {
    HR_UNROLL for (int j = 0; j < kRowRun; ++j) shared[(group.index * kRowRuns + p) * stride + first + j] =
        sums[p].at[j];
  }
  __syncthreads();
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    float sum = 0;
    for (int g = 0; g < group.count; ++g) sum += shared[g * kRowRuns * stride + i];
    to[i] = sum;
  }
}

// Adds a thread's part to columns that registers do not hold; with `fresh` stores it.
template <bool kWhole>
HR_DEVICE void add_to_sums(float* to, int64_t i, int64_t width, bool fresh, Floats<kRowRun> part) {
  if (!fresh) {
    const Floats<kRowRun> before = widen(load_row<kWhole, kRowRun>(to, i, width));
    HR_UNROLL for (int j = 0; j < kRowRun; ++j) part.at[j] += before.at[j];
  }
  store_row<kWhole>(to, i, width, part);
}

#ifndef __CUDACC_RTC__
// Dynamic shared memory for one call of store_group_sums().
inline int64_t group_sums_shared(int64_t width) {
  return row_lanes(width) <= kWarp ? int64_t{row_block(width)} * kRowRuns * kRowRun * 4 : 0;
}

// One group of threads per row.
inline Grid row_grid(int64_t rows, int64_t width) {
  Grid grid;
  grid.block = row_block(width);
  const int64_t groups = grid.block / row_lanes(width);
  grid.x = (rows + groups - 1) / groups;
  return grid;
}

// The grid of a gradient over rows. With `sums`, each block writes its column sums to one row of scratch.
struct RowGradientLaunch {
  Grid grid;
  int64_t chunk = 0;  // rows of a block
};

inline RowGradientLaunch row_gradient_launch(int64_t rows, int64_t width, bool sums) {
  RowGradientLaunch launch = {row_grid(rows, width)};
  launch.chunk = launch.grid.block / row_lanes(width);
  if (!sums) return launch;
  launch.chunk = rows_per_chunk(rows, width);
  launch.grid.x = row_chunk_count(rows, width);
  launch.grid.shared_bytes = group_sums_shared(width);
  return launch;
}
#endif

// Instantiates a kernel with two operand types, for widths of whole runs and for others.
#define HR_INSTANTIATE_ROWS(name, Args)                     \
  template __global__ void name<float, float, true>(Args);  \
  template __global__ void name<float, Bf16, true>(Args);   \
  template __global__ void name<Bf16, float, true>(Args);   \
  template __global__ void name<Bf16, Bf16, true>(Args);    \
  template __global__ void name<float, Half, true>(Args);   \
  template __global__ void name<Half, float, true>(Args);   \
  template __global__ void name<Half, Half, true>(Args);    \
  template __global__ void name<float, float, false>(Args); \
  template __global__ void name<float, Bf16, false>(Args);  \
  template __global__ void name<Bf16, float, false>(Args);  \
  template __global__ void name<Bf16, Bf16, false>(Args);   \
  template __global__ void name<float, Half, false>(Args);  \
  template __global__ void name<Half, float, false>(Args);  \
  template __global__ void name<Half, Half, false>(Args);

}  // namespace headroom::cuda
