// Elements in registers, widened to f32: loads and stores of up to 16 bytes, and loops over arrays.
#pragma once

#include "ops/cuda/device_language.cuh"

namespace headroom::cuda {

template <int N>
struct Floats {
  float at[N];
};

// N elements as stored in memory. Several such loads are in flight before the first is widened.
template <typename T, int N>
struct Raw {
  static constexpr int kBytes = N * static_cast<int>(sizeof(T));
  static constexpr int kWords = kBytes < 4 ? 1 : kBytes / 4;
  uint32_t word[kWords];
};

// One access of 2, 4, 8 or 16 bytes, aligned to its size; stores are for device memory, not for shared memory. Stores
// are PTX because nvcc splits some stores of structs.
template <int kBytes>
HR_DEVICE void load_words(const void* from, uint32_t* words) {
#ifdef __CUDACC__
  if constexpr (kBytes == 16) {
    const uint4 x = *static_cast<const uint4*>(from);
    words[0] = x.x, words[1] = x.y, words[2] = x.z, words[3] = x.w;
  } else if constexpr (kBytes == 8) {
    const uint2 x = *static_cast<const uint2*>(from);
    words[0] = x.x, words[1] = x.y;
  } else if constexpr (kBytes == 4) {
    words[0] = *static_cast<const uint32_t*>(from);
  } else {
    words[0] = *static_cast<const uint16_t*>(from);
  }
#else
  cuda_shim::check_aligned(from, kBytes);
  words[0] = 0;
  std::memcpy(words, from, kBytes);
#endif
}

template <int kBytes>
HR_DEVICE void store_words(void* to, const uint32_t* words) {
#ifdef __CUDACC__
  if constexpr (kBytes == 16)
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                 "r"(words[3])
                 : "memory");
  else if constexpr (kBytes == 8)
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(words[0]), "r"(words[1]) : "memory");
  else if constexpr (kBytes == 4)
    *static_cast<uint32_t*>(to) = words[0];
  else
    *static_cast<uint16_t*>(to) = static_cast<uint16_t>(words[0]);
#else
  cuda_shim::check_device_store(to, kBytes);
  std::memcpy(to, words, kBytes);
#endif
}

// N consecutive elements, aligned to their size or to 16 bytes.
template <int N, typename T>
HR_DEVICE Raw<T, N> load_raw(const T* from) {
  constexpr int kBytes = Raw<T, N>::kBytes, kEach = kBytes < 16 ? kBytes : 16;
  Raw<T, N> x;
  HR_UNROLL for (int k = 0; k < kBytes / kEach; ++k)
      load_words<kEach>(reinterpret_cast<const unsigned char*>(from) + k * kEach, x.word + k * 4);
  return x;
}

template <int N>
HR_DEVICE Floats<N> widen(const Raw<float, N>& raw) {
  Floats<N> x;
  HR_UNROLL for (int j = 0; j < N; ++j) x.at[j] = __uint_as_float(raw.word[j]);
  return x;
}
template <int N>
HR_DEVICE Floats<N> widen(const Raw<Bf16, N>& raw) {
  Floats<N> x;
  HR_UNROLL for (int j = 0; j < N; ++j) x.at[j] =
      __uint_as_float(j % 2 == 0 ? raw.word[j / 2] << 16 : raw.word[j / 2] & 0xffff0000u);
  return x;
}

template <int N>
HR_DEVICE Floats<N> widen(const Raw<Half, N>& raw) {
  Floats<N> x;
  HR_UNROLL for (int j = 0; j < N; ++j) x.at[j] = widen(Half{static_cast<uint16_t>(raw.word[j / 2] >> (j % 2 * 16))});
  return x;
}

template <typename T>
constexpr bool kIsHalf = false;
template <>
constexpr bool kIsHalf<Half> = true;

// Two narrow numbers in a word, the first in its lower half; rounded like narrow<T>, with one instruction if there is
// one.
template <typename T>
HR_DEVICE uint32_t narrow_pair(float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t pair;
  if constexpr (kIsHalf<T>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return narrow<T>(first).bits | static_cast<uint32_t>(narrow<T>(second).bits) << 16;
#endif
}

template <typename T, int N>
HR_DEVICE Raw<T, N> narrow_raw(const Floats<N>& x, float) {
  Raw<T, N> raw;
  HR_UNROLL for (int j = 0; j < N; ++j) raw.word[j] = __float_as_uint(x.at[j]);
  return raw;
}
template <typename T, int N, typename Narrow>
HR_DEVICE Raw<T, N> narrow_raw(const Floats<N>& x, Narrow) {
  Raw<T, N> raw;
  if constexpr (N == 1) raw.word[0] = narrow<Narrow>(x.at[0]).bits;
  HR_UNROLL for (int j = 0; j < N / 2; ++j) raw.word[j] = narrow_pair<Narrow>(x.at[2 * j], x.at[2 * j + 1]);
  return raw;
}

template <int N, typename T>
HR_DEVICE void store_raw(T* to, const Raw<T, N>& raw) {
  constexpr int kBytes = Raw<T, N>::kBytes, kEach = kBytes < 16 ? kBytes : 16;
  HR_UNROLL for (int k = 0; k < kBytes / kEach; ++k)
      store_words<kEach>(reinterpret_cast<unsigned char*>(to) + k * kEach, raw.word + k * 4);
}

// load_raw() and store_raw() with f32 values.
template <int N, typename T>
HR_DEVICE Floats<N> load_floats(const T* from) {
  return widen(load_raw<N>(from));
}
template <int N, typename T>
HR_DEVICE void store_floats(T* to, const Floats<N>& x) {
  store_raw<N>(to, narrow_raw<T>(x, T{}));
}

// Elements [i, i + N) of a row; 0 past `width`. kWhole: the width is a multiple of N and the row is aligned as load_raw
// requires. The load is then unconditional and reads the row's start if i is past the end: with a branch the next load
// would wait for this one.
template <bool kWhole, int N, typename T>
HR_DEVICE Raw<T, N> load_row(const T* row, int64_t i, int64_t width) {
  Raw<T, N> x = {};
  if constexpr (kWhole) {
    x = load_raw<N>(row + (i < width ? i : 0));
    HR_UNROLL for (int k = 0; k < Raw<T, N>::kWords; ++k) x.word[k] = i < width ? x.word[k] : 0u;
  } else {
    constexpr int kBits = 8 * static_cast<int>(sizeof(T)), kPerWord = 32 / kBits;
    HR_UNROLL for (int j = 0; j < N; ++j) {
      if (i + j >= width) continue;
      uint32_t bits = 0;
      load_words<static_cast<int>(sizeof(T))>(row + i + j, &bits);
      x.word[j / kPerWord] |= bits << (j % kPerWord * kBits);
    }
  }
  return x;
}

template <bool kWhole, int N, typename T>
HR_DEVICE void store_row(T* row, int64_t i, int64_t width, const Floats<N>& x) {
  if constexpr (kWhole) {
    if (i < width) store_floats<N>(row + i, x);
  } else {
    HR_UNROLL for (int j = 0; j < N; ++j) {
      if (i + j < width) row[i + j] = narrow<T>(x.at[j]);
    }
  }
}

// The number of elements that body() processes, passed as its first argument; `value` is a constant.
template <int N>
struct Run {
  static constexpr int value = N;
};

// Calls body(Run<n>, i) for all i below count: runs of N at multiples of N, the last count % N elements one by one.
// Grid-stride.
template <int N, typename Body>
HR_DEVICE void for_runs(int64_t count, const Body& body) {
  const int64_t runs = count / N;
  for (int64_t i = first_index(); i < runs; i += index_stride()) body(Run<N>(), i * N);
  for (int64_t i = runs * N + first_index(); i < count; i += index_stride()) body(Run<1>(), i);
}

// a / b, with a 32-bit division if that is enough.
HR_DEVICE int64_t quotient(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

HR_DEVICE int64_t clamp_index(int64_t i, int64_t count) { return i < 0 ? 0 : i < count ? i : count - 1; }

}  // namespace headroom::cuda
