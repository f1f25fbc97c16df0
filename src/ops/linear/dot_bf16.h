// Dot products of bf16 rows by vdpbf16ps: 32 elements a step, of which each lane adds a pair; the lanes are added at
// the end in one tree. A sum has the same bits whether the weight's elements are loaded or decoded. Only functions
// marked HEADROOM_AVX512_BF16 may call these. The header is empty unless HEADROOM_HAS_AVX512 is defined.
#pragma once

#include "base/bfloat16.h"
#include "ops/cpu/avx512_bf16.h"
#include "ops/linear/row_products.h"

#ifdef HEADROOM_HAS_AVX512

namespace headroom {

constexpr int64_t kDotStep = 32;
constexpr int64_t kDotRows = 4, kDotOuts = 6;  // of a tile; its sums fill three quarters of the registers
constexpr int64_t kDotRowOuts = 8;             // columns of a tile of one row

HEADROOM_AVX512_BF16 inline __m512 add_halves(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}

HEADROOM_AVX512_BF16 inline __m512 add_quarters(__m512 a, __m512 b) {
  const __m512d left = _mm512_castps_pd(a), right = _mm512_castps_pd(b);
  return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(left, right)),
                       _mm512_castpd_ps(_mm512_unpackhi_pd(left, right)));
}

// Stores the sum of the lanes of each of eight vectors, added in the same order.
HEADROOM_AVX512_BF16 inline void store_sums(const __m512* v, float* sums) {
  const __m512 low = add_quarters(add_halves(v[0], v[1]), add_halves(v[2], v[3]));
  const __m512 high = add_quarters(add_halves(v[4], v[5]), add_halves(v[6], v[7]));
  const __m512 both = _mm512_add_ps(_mm512_shuffle_f32x4(low, high, 0x88), _mm512_shuffle_f32x4(low, high, 0xdd));
  const __m512 all = _mm512_add_ps(both, _mm512_shuffle_f32x4(both, both, 0xb1));
  _mm256_storeu_ps(sums, _mm512_castps512_ps256(_mm512_shuffle_f32x4(all, all, 0x08)));
}

// The number of vectors for a tile's sums, a multiple of store_sums()'s eight.
template <int kOuts, int kCount>
constexpr int kSumsOf = (kOuts * kCount + 7) / 8 * 8;

template <int kOuts, int kCount>
HEADROOM_AVX512_BF16 inline void store_all_sums(const __m512* total, float* sums) {
#pragma GCC unroll 4
  for (int of = 0; of < kSumsOf<kOuts, kCount>; of += 8) store_sums(total + of, sums + of);
}

// Prefetches memory, a few lines per step.
struct Ahead {
  const char* at = nullptr;
  int64_t lines = 0;  // per step

  HEADROOM_AVX512_BF16 void step() {
    for (int64_t i = 0; i < lines; ++i, at += 64) _mm_prefetch(at, _MM_HINT_T0);
  }
};

// Rows of a dense weight, stored one after another.
struct DenseRows {
  const uint16_t* w;
  int64_t ins;

  HEADROOM_AVX512_BF16 __m512i load(int64_t out, int64_t i) const { return _mm512_loadu_si512(w + out * ins + i); }
  HEADROOM_AVX512_BF16 __m512i load(int64_t out, int64_t i, __mmask32 mask) const {
    return _mm512_maskz_loadu_epi16(mask, w + out * ins + i);
  }
};

// The same of f32, rounded to bf16 as they are loaded.
struct RoundedRows {
  const float* w;
  int64_t ins;

  HEADROOM_AVX512_BF16 __m512i load(int64_t out, int64_t i) const {
    const float* const from = w + out * ins + i;
    return narrow_row(_mm512_loadu_ps(from), _mm512_loadu_ps(from + 16));
  }
  HEADROOM_AVX512_BF16 __m512i load(int64_t out, int64_t i, __mmask32 mask) const {
    const float* const from = w + out * ins + i;
    return narrow_row(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from),
                      _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), from + 16));
  }
};

// Adds the products of the elements from `i` on of kCount rows of x and kOuts rows of the weight; `mask`: which of the
// 32 exist.
template <int kOuts, int kCount, typename Weight, typename... Mask>
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) void add_step(const Weight& weight, const uint16_t* x,
                                                                         int64_t ins, int64_t i, __m512* total,
                                                                         Mask... mask) {
  const DenseRows rows{x, ins};
  __m512bh right[kOuts];
#pragma GCC unroll 8
  for (int out = 0; out < kOuts; ++out) right[out] = as_bf16(weight.load(out, i, mask...));
#pragma GCC unroll 8
  for (int row = 0; row < kCount; ++row) {
    const __m512bh left = as_bf16(rows.load(row, i, mask...));
#pragma GCC unroll 8
    for (int out = 0; out < kOuts; ++out)
      total[row * kOuts + out] = _mm512_dpbf16_ps(total[row * kOuts + out], left, right[out]);
  }
}

// total[row][out] for kCount rows of x and kOuts rows of the weight, over the whole steps of 32 elements.
template <int kOuts, int kCount, typename Weight>
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) void add_steps(const Weight& weight, const uint16_t* x,
                                                                          int64_t ins, Ahead ahead, __m512* total) {
#pragma GCC unroll 32
  for (int i = 0; i < kSumsOf<kOuts, kCount>; ++i) total[i] = _mm512_setzero_ps();
  for (int64_t i = 0; i + kDotStep <= ins; i += kDotStep) {
    ahead.step();
    add_step<kOuts, kCount>(weight, x, ins, i, total);
  }
}

HEADROOM_AVX512_BF16 inline __m512 load_narrow(__mmask16 mask, const bfloat16* from) {
  return widen_bf16(_mm256_maskz_loadu_epi16(mask, from));
}
HEADROOM_AVX512_BF16 inline __m512 load_narrow(__mmask16 mask, const float* from) {
  return _mm512_maskz_loadu_ps(mask, from);
}
HEADROOM_AVX512_BF16 inline void store_narrow(__mmask16 mask, __m512 value, bfloat16* to) {
  _mm256_mask_storeu_epi16(to, mask, (__m256i)_mm512_cvtneps_pbh(value));
}
HEADROOM_AVX512_BF16 inline void store_narrow(__mmask16 mask, __m512 value, float* to) {
  _mm512_mask_storeu_ps(to, mask, value);
}

// Writes the sums of a tile to y; those of a row are `stride` behind the row before.
template <typename R>
HEADROOM_AVX512_BF16 inline void finish(const RowProduct& call, int64_t row, int64_t rows, int64_t out, int64_t outs,
                                        const float* sums, int64_t stride) {
  const auto mask = static_cast<__mmask16>((1u << outs) - 1);
  const __m512 bias = call.bias ? _mm512_maskz_loadu_ps(mask, call.bias + out) : _mm512_setzero_ps();
  for (int64_t i = 0; i < rows; ++i, sums += stride) {
    const int64_t at = (row + i) * call.outs + out;
    __m512 sum = _mm512_maskz_loadu_ps(mask, sums);
    if (call.bias) sum = _mm512_add_ps(sum, bias);
    if (call.residual) sum = _mm512_add_ps(sum, load_narrow(mask, static_cast<const R*>(call.residual) + at));
    store_narrow(mask, sum, static_cast<R*>(call.y) + at);
  }
}

}  // namespace headroom

#endif  // HEADROOM_HAS_AVX512
