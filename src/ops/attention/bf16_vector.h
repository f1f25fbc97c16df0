// The AVX-512 part of attention with bf16 products. Only functions marked HEADROOM_AVX512_BF16 may call it.
#pragma once

#include <algorithm>
#include <numbers>

#include "ops/attention/forward_driver.h"
#include "ops/cpu/avx512_bf16.h"

#ifdef HEADROOM_HAS_AVX512

namespace headroom {

// The keys [begin, end) of a step's tile that a query sees.
struct KeySpan {
  int32_t begin;
  int32_t end;
  // A mask of the 16 keys from `key`: those in the span.
  __mmask16 mask16(int32_t key) const {
    const auto below = [](int32_t count) { return (1u << std::clamp(count, 0, 16)) - 1; };
    return static_cast<__mmask16>(below(end - key) & ~below(begin - key));
  }
};
inline KeySpan keys_seen(const StripStep& step, int32_t query) {
  KeySpan span{std::max(step.begin, step.visible_begin + query), std::min(step.end, step.visible_end + query)};
  if (step.segmented) span.begin = std::max(span.begin, step.starts[static_cast<size_t>(query)]);
  return span;
}

// 2^x, relative error 3e-6 (the minimax polynomial of degree 4 on [0, 1)); 2^-126 for smaller results, infinity for
// larger ones.
HEADROOM_AVX512_BF16 inline __m512 exp2_for_bf16(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-126.0f), x);
  const __m512 f = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(1.353416791e-2f), f, _mm512_set1_ps(5.201146062e-2f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.414427569e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.930038345e-1f));
  return _mm512_scalef_ps(_mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0000025934f)), x);
}

// Stores the transpose of rows [count][width] as the right operand of a product; both are multiples of 32.
HEADROOM_AVX512_BF16 inline void pack_transposed(const uint16_t* rows, int64_t width, int64_t count, uint16_t* to) {
  for (int64_t row = 0; row < count; row += 32)
    transpose_words32(rows + row * width, width / 2, 32, width / 2, to + row * width, 32);
}

// Stores rows [count][width] as the right operand of a product, groups of columns `group` elements apart; count and
// width are multiples of 32.
HEADROOM_AVX512_BF16 inline void pack_rows(const uint16_t* rows, int64_t width, int64_t count, uint16_t* to,
                                           int64_t group) {
  for (int64_t column = 0; column < width; column += 32)
    pair_rows(rows + column, width, count, 32, to + column / 32 * group);
}

// log(x) of positive x: 2 atanh((m - 1) / (m + 1)) for the mantissa m, 0.75 <= m < 1.5, plus the exponent.
HEADROOM_AVX512_BF16 inline __m512 log_of(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0f), m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  const __m512 exponent = _mm512_sub_ps(_mm512_getexp_ps(x), _mm512_getexp_ps(m));
  const __m512 t = _mm512_div_ps(_mm512_sub_ps(m, one), _mm512_add_ps(m, one)), square = _mm512_mul_ps(t, t);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(2.0f / 9), square, _mm512_set1_ps(2.0f / 7));
  p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(2.0f / 5));
  p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(2.0f / 3));
  p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(2.0f));
  return _mm512_fmadd_ps(exponent, _mm512_set1_ps(std::numbers::ln2_v<float>), _mm512_mul_ps(p, t));
}

// One mixing round of counter_bits() (ops/stream/counter_bits.h).
HEADROOM_AVX512_BF16 inline __m512i mix32_words(__m512i x) {
  x = _mm512_mullo_epi32(_mm512_xor_si512(x, _mm512_srli_epi32(x, 16)),
                         _mm512_set1_epi32(static_cast<int>(0x85ebca6b)));
  x = _mm512_mullo_epi32(_mm512_xor_si512(x, _mm512_srli_epi32(x, 13)),
                         _mm512_set1_epi32(static_cast<int>(0xc2b2ae35)));
  return _mm512_xor_si512(x, _mm512_srli_epi32(x, 16));
}

// A mask of the 32 keys from `key` (even): those whose probabilities are kept in a row. `low` and `high` are the halves
// of the row's key.
HEADROOM_AVX512_BF16 inline __mmask32 kept_words(uint32_t low, uint32_t high, int64_t key, uint32_t below) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i pair = _mm512_set1_epi32(static_cast<int>(low + static_cast<uint32_t>(key / 2)));
  const __m512i first = mix32_words(_mm512_add_epi32(pair, lane));
  const __m512i bits = mix32_words(_mm512_xor_si512(first, _mm512_set1_epi32(static_cast<int>(high))));
  return _mm512_cmpge_epu16_mask(bits, _mm512_set1_epi16(static_cast<int16_t>(below)));
}

// Stores a row of `dim` numbers times `factor` as bf16; `from` is padded to a multiple of 32.
HEADROOM_AVX512_BF16 inline void store_row(const float* from, float factor, int64_t dim, uint16_t* to) {
  const __m512 factors = _mm512_set1_ps(factor);
  for (int64_t j = 0; j < dim; j += 32) {
    const __m512i row = narrow_row(_mm512_mul_ps(_mm512_loadu_ps(from + j), factors),
                                   _mm512_mul_ps(_mm512_loadu_ps(from + j + 16), factors));
    const __mmask32 mask = first_words(dim - j);
    _mm512_mask_storeu_epi16(to + j, mask, row);
  }
}

}  // namespace headroom

#endif
