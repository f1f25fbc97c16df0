// Device code on the CPU, block by block: the threads of a block are fibers that meet at real barriers.
// ops/cuda/device_language.cuh includes this instead of CUDA's headers. What a GPU does in an undefined order is done
// in the order of set_order(), so that a missing barrier shows as a difference between orders. A program's faults are
// thrown as InternalError by run_grid(): a barrier that not all threads reach, a collective with part of a warp or with
// lanes at different places, an access that is not aligned to its size, an access outside the shared memory of the
// launch.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

#include "base/float16.h"

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

// The order in which the fibers of a block run between barriers, and the blocks of a grid.
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
// The bytes of lane `from`; all lanes of the warp must call it, from one line.
void exchange(const void* mine, void* theirs, size_t bytes, int from, unsigned mask, int line);
int lane();

// Runs body() once for each thread of each block; shared memory is filled with NaN patterns before each block. Throws
// the kernel's faults. Not thread-safe.
// The most dynamic shared memory of a block: that of 8.6 and 8.9, the smallest of 8.0 and later, unless a test raises
// it.
constexpr int64_t kLeastSharedBytes = 99 << 10;
extern int64_t most_shared;
void run_grid_of(Dim3 grid, unsigned block, size_t shared_bytes, void (*body)(const void*), const void* context);
template <typename Body>
void run_grid(Dim3 grid, unsigned block, size_t shared_bytes, const Body& body) {
  run_grid_of(
      grid, block, shared_bytes, [](const void* context) { (*static_cast<const Body*>(context))(); }, &body);
}

// Stream capture: between begin_capture() and end_capture(), work queued through do_or_capture() is recorded and not
// done. One capture at a time; whoever gets the recorded functions runs them by calling them.
using Captured = std::vector<std::function<void()>>;
void begin_capture();
Captured end_capture();
Captured* capture_under_way();  // null when there is none
template <typename Work>
void do_or_capture(const Work& work) {
  if (Captured* const captured = capture_under_way())
    captured->emplace_back(work);
  else
    work();
}

// Replaces loading code and requesting shared memory (ops/cuda/launch.h).
void load(const void* code, int64_t shared_bytes);
// From now on only kernels may run that have been loaded since, with at least as much shared memory; with false, all
// may.
void demand_loading(bool demand);
void check_loaded(const void* code, int64_t shared_bytes);
int64_t loaded_kernels();  // since loading is required

// Checks that an access of `bytes` is aligned to its size.
void check_aligned(const void* at, size_t bytes);
// Also checks that it is inside the block's dynamic shared memory, or outside all of it.
void check_shared(const void* at, size_t bytes);
void check_device_store(const void* at, size_t bytes);

// cp.async: `shared` holds NaN patterns until the running thread has waited for the copy's group.
void begin_copy(void* shared, const void* global, size_t bytes, bool there);
void end_copy_group();
void await_copies(int under_way);

// Conversions of fp16 numbers, as the processor of a GPU has them.
inline float half_as_float(uint16_t bits) { return static_cast<float>(float16::of_bits(bits)); }
inline uint16_t float_as_half(float x) { return float16(x).bits; }

// Number of threads run so far, for tests of the shim and of a test's cost.
int64_t threads_run();

template <typename T>
T shuffle(unsigned mask, T value, int from, int line) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
  T other;
  exchange(&value, &other, sizeof(T), from, mask, line);
  return other;
}

}  // namespace headroom::cuda_shim

template <typename T>
T __shfl_sync(unsigned mask, T value, int from, int line = __builtin_LINE()) {
  return headroom::cuda_shim::shuffle(mask, value, from & 31, line);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int distance, int line = __builtin_LINE()) {
  return headroom::cuda_shim::shuffle(mask, value, headroom::cuda_shim::lane() ^ distance, line);
}
// Lanes that would read past the warp keep their own value.
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int line = __builtin_LINE()) {
  const int from = headroom::cuda_shim::lane() + static_cast<int>(distance);
  return headroom::cuda_shim::shuffle(mask, value, from < 32 ? from : headroom::cuda_shim::lane(), line);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int line = __builtin_LINE()) {
  const int from = headroom::cuda_shim::lane() - static_cast<int>(distance);
  return headroom::cuda_shim::shuffle(mask, value, from >= 0 ? from : headroom::cuda_shim::lane(), line);
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
// A sum that no compiler fuses with a product: a GPU's fused multiply-add would not round the product.
inline float __fadd_rn(float a, float b) {
  volatile float sum = a + b;
  return sum;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
template <typename T>
T __ldg(const T* at) {
  return *at;
}
// Integers only: sums of floats with atomics have no fixed order.
inline int atomicAdd(int* at, int value) {
  const int before = *at;
  *at += value;
  return before;
}
