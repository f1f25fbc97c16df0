// Sums and maxima over a warp or a block in a fixed order: the same bits whatever the scheduling.
#pragma once

#include "ops/cuda/device_language.cuh"

namespace headroom::cuda {

struct Sum {
  template <typename T>
  HR_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <typename T>
  HR_DEVICE T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// Over the 32 lanes of a full warp; every lane gets the result.
template <typename Combine, typename T>
HR_DEVICE T reduce_warp(T value, Combine combine) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

// Over a block whose size is a multiple of 32 threads, at most 1024; every thread gets the result. `neutral` is the
// operation's neutral element. `slots` is shared memory for 32 values; it may be reused after the next barrier.
template <typename Combine, typename T>
HR_DEVICE T reduce_block(T value, T* slots, T neutral, Combine combine) {
  value = reduce_warp(value, combine);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  if (lane == 0) slots[warp] = value;
  __syncthreads();
  value = lane < static_cast<int>(blockDim.x) / kWarp ? slots[lane] : neutral;
  return reduce_warp(value, combine);
}

}  // namespace headroom::cuda
