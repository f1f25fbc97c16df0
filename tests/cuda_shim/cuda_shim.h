// Device code on the CPU, block by block: the threads of a block are fibers that meet at real barriers. Included by
// ops/cuda/device_language.cuh in place of CUDA's headers. What a GPU would do in some order is done in the order that
// set_order() names, so that a missing barrier shows as a difference between orders. Faults of the program (a barrier
// that not all threads reach, a collective of part of a warp) throw InternalError out of run_grid().
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __shared__ static
#define threadIdx (::headroom::cuda_shim::thread_index())
#define blockIdx (::headroom::cuda_shim::block_index())
#define blockDim (::headroom::cuda_shim::block_size())
#define gridDim (::headroom::cuda_shim::grid_size())
#define __syncthreads() ::headroom::cuda_shim::block_barrier(__LINE__)
#define __syncwarp() ::headroom::cuda_shim::warp_barrier(__LINE__)

namespace headroom::cuda_shim {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// In which order the fibers of a block run between barriers, and the blocks of a grid.
enum class Order { forward, backward, shuffled };
void set_order(Order order);

// Of the running fiber.
const Dim3& thread_index();
const Dim3& block_index();
const Dim3& block_size();
const Dim3& grid_size();
void* dynamic_shared();
void block_barrier(int line);
void warp_barrier(int line);
// Lane `from`'s bytes; the whole warp calls it.
void exchange(const void* mine, void* theirs, size_t bytes, int from, unsigned mask);
int lane();

// Runs body() once for each thread of each block; shared memory is filled with NaN patterns before each block. Throws
// what the kernel's faults throw. Not thread-safe.
void run_grid_of(Dim3 grid, unsigned block, size_t shared_bytes, void (*body)(const void*), const void* context);
template <typename Body>
void run_grid(Dim3 grid, unsigned block, size_t shared_bytes, const Body& body) {
  run_grid_of(
      grid, block, shared_bytes, [](const void* context) { (*static_cast<const Body*>(context))(); }, &body);
}
// Threads run so far, for tests of the shim and of the cost of a test.
int64_t threads_run();

template <typename T>
T shuffle(unsigned mask, T value, int from) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
  T other;
  exchange(&value, &other, sizeof(T), from, mask);
  return other;
}

}  // namespace headroom::cuda_shim

template <typename T>
T __shfl_sync(unsigned mask, T value, int from) {
  return headroom::cuda_shim::shuffle(mask, value, from & 31);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int distance) {
  return headroom::cuda_shim::shuffle(mask, value, headroom::cuda_shim::lane() ^ distance);
}
// Lanes that would reach past the warp keep their own value.
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance) {
  const int from = headroom::cuda_shim::lane() + static_cast<int>(distance);
  return headroom::cuda_shim::shuffle(mask, value, from < 32 ? from : headroom::cuda_shim::lane());
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance) {
  const int from = headroom::cuda_shim::lane() - static_cast<int>(distance);
  return headroom::cuda_shim::shuffle(mask, value, from >= 0 ? from : headroom::cuda_shim::lane());
}

inline uint32_t __float_as_uint(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
inline float __uint_as_float(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
template <typename T>
T __ldg(const T* at) {
  return *at;
}
// Integers only: sums of floats by atomics have no fixed order.
inline int atomicAdd(int* at, int value) {
  const int before = *at;
  *at += value;
  return before;
}
