// The language of device code: CUDA C++ for nvcc and NVRTC, or the same text for a C++ compiler with the test shim,
// which runs the threads of a block as fibers. Kernels use only what all three support: no standard headers, no warp
// collectives for a part of a warp, dynamic shared memory with HR_DYNAMIC_SHARED, launches with launch() of
// ops/cuda/launch.cuh.
#pragma once

#if defined(__CUDACC_RTC__)
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#elif defined(__CUDACC__)
#include <cuda_runtime.h>

#include <cstdint>
#else
#include <cmath>
#include <cstdint>

#include "cuda_shim/cuda_shim.h"
#endif

// An array T name[] in the block's dynamic shared memory, with the bytes given at the launch, aligned to 16 bytes. One
// per kernel: divide it by hand.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define HR_DYNAMIC_SHARED(T, name)                                    \
  extern __shared__ __align__(16) unsigned char hr_dynamic_shared_[]; \
  T* const name = reinterpret_cast<T*>(hr_dynamic_shared_)
#else
#define HR_DYNAMIC_SHARED(T, name) T* const name = reinterpret_cast<T*>(::headroom::cuda_shim::dynamic_shared())
#endif

#define HR_DEVICE __device__ __forceinline__

// Before a loop with a constant count whose body indexes arrays that must stay in registers.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define HR_UNROLL _Pragma("unroll")
#else
#define HR_UNROLL
#endif

namespace headroom::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// bf16 as stored in memory. Rounds to nearest even; NaN stays NaN.
struct Bf16 {
  uint16_t bits;
};

// fp16 as stored in memory. Rounds to nearest even; NaN stays NaN, values that round beyond 65504 become infinite.
struct Half {
  uint16_t bits;
};

HR_DEVICE float widen(float x) { return x; }
HR_DEVICE float widen(Bf16 x) { return __uint_as_float(static_cast<uint32_t>(x.bits) << 16); }
HR_DEVICE float widen(Half x) {
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
#else
  return cuda_shim::half_as_float(x.bits);
#endif
}

template <typename T>
HR_DEVICE T narrow(float x);
template <>
HR_DEVICE float narrow<float>(float x) {
  return x;
}
template <>
HR_DEVICE Bf16 narrow<Bf16>(float x) {
  const uint32_t raw = __float_as_uint(x);
  if ((raw & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((raw >> 16) | 0x40u)};
  return {static_cast<uint16_t>((raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16)};
}
template <>
HR_DEVICE Half narrow<Half>(float x) {
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return {bits};
#else
  return {cuda_shim::float_as_half(x)};
#endif
}

// Elements of a grid-stride loop: for (int64_t i = first_index(); i < count; i += index_stride()).
HR_DEVICE int64_t first_index() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
HR_DEVICE int64_t index_stride() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

// N consecutive elements, moved with one access of N * sizeof(T) bytes (a power of two, at most 16) and aligned to it.
template <typename T, int N>
struct alignas(N * sizeof(T)) Pack {
  T at[N];
};
// Number of elements in 16 bytes.
template <typename T>
constexpr int kPack = 16 / static_cast<int>(sizeof(T));

}  // namespace headroom::cuda
