// Elements in registers, widened to f32: moved by accesses of up to 16 bytes, and loops over arrays of them.
#pragma once

#include "ops/cuda/device_language.cuh"

namespace headroom::cuda {

template <int N>
struct Floats {
  float at[N];
};

// N consecutive elements, aligned to as many or to 16 bytes.
template <int N, typename T>
HR_DEVICE Floats<N> load_floats(const T* from) {
  constexpr int M = N < kPack<T> ? N : kPack<T>;
  Floats<N> x;
  HR_UNROLL for (int i = 0; i < N / M; ++i) {
    const Pack<T, M> pack = reinterpret_cast<const Pack<T, M>*>(from)[i];
    HR_UNROLL for (int j = 0; j < M; ++j) x.at[i * M + j] = widen(pack.at[j]);
  }
  return x;
}

template <int N, typename T>
HR_DEVICE void store_floats(T* to, const Floats<N>& x) {
  constexpr int M = N < kPack<T> ? N : kPack<T>;
  HR_UNROLL for (int i = 0; i < N / M; ++i) {
    Pack<T, M> pack;
    HR_UNROLL for (int j = 0; j < M; ++j) pack.at[j] = narrow<T>(x.at[i * M + j]);
    reinterpret_cast<Pack<T, M>*>(to)[i] = pack;
  }
}

// N elements as they lie in memory: loads of several such are all under way before the first is widened.
template <typename T, int N>
struct Raw {
  static constexpr int kEach = N < kPack<T> ? N : kPack<T>;
  Pack<T, kEach> pack[N / kEach];
};

// Elements [i, i + N) of a row, 0 where they lie past `width`. kWhole: the width is a multiple of N and the row aligned
// as load_floats wants it.
template <bool kWhole, int N, typename T>
HR_DEVICE Raw<T, N> load_row(const T* row, int64_t i, int64_t width) {
  constexpr int M = Raw<T, N>::kEach;
  Raw<T, N> x = {};
  if constexpr (kWhole) {
    if (i < width) {
      HR_UNROLL for (int k = 0; k < N / M; ++k) x.pack[k] = reinterpret_cast<const Pack<T, M>*>(row + i)[k];
    }
  } else {
    HR_UNROLL for (int j = 0; j < N; ++j) {
      if (i + j < width) x.pack[j / M].at[j % M] = row[i + j];
    }
  }
  return x;
}

template <typename T, int N>
HR_DEVICE Floats<N> widen(const Raw<T, N>& raw) {
  constexpr int M = Raw<T, N>::kEach;
  Floats<N> x;
  HR_UNROLL for (int j = 0; j < N; ++j) x.at[j] = widen(raw.pack[j / M].at[j % M]);
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

// How many elements body() treats: its first argument, whose `value` is a constant.
template <int N>
struct Run {
  static constexpr int value = N;
};

// body(Run<n>, i) for all i below count: runs of N at multiples of N, the last count % N elements singly. Grid-stride.
template <int N, typename Body>
HR_DEVICE void for_runs(int64_t count, const Body& body) {
  const int64_t runs = count / N;
  for (int64_t i = first_index(); i < runs; i += index_stride()) body(Run<N>(), i * N);
  for (int64_t i = runs * N + first_index(); i < count; i += index_stride()) body(Run<1>(), i);
}

// a / b, by the short division where that is enough.
HR_DEVICE int64_t quotient(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

HR_DEVICE int64_t clamp_index(int64_t i, int64_t count) { return i < 0 ? 0 : i < count ? i : count - 1; }

}  // namespace headroom::cuda
