// Sixteen elements of a dtype as f32 and back, with the bits of base/bfloat16.h and base/float16.h. Only functions
// marked HEADROOM_AVX512_BF16 may call these; empty unless HEADROOM_HAS_AVX512 is defined.
#pragma once

#include "ir/dtype.h"
#include "ops/cpu/avx512_bf16.h"

#ifdef HEADROOM_HAS_AVX512

namespace headroom {

HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) __m512 load_floats(DType dtype, const void* from, int64_t at,
                                                                              __mmask16 mask) {
  if (dtype == DType::f32) return _mm512_maskz_loadu_ps(mask, static_cast<const float*>(from) + at);
  const __m256i words = _mm256_maskz_loadu_epi16(mask, static_cast<const uint16_t*>(from) + at);
  return dtype == DType::bf16 ? widen_bf16(words) : _mm512_cvtph_ps(words);
}

// A mask of the first `count` of 16 lanes.
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>(first_words(std::min<int64_t>(count, 16)));
}

// The bits of |x|, which are ordered as |x| is.
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) __m512i magnitudes(__m512 x) {
  return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}

// To nearest even; unlike the processor's conversion this keeps subnormal numbers.
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) __m256i rounded_words(__m512 value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i nearest = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(nearest, nan, quiet), 16));
}

HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) __m256i half_words(__m512 value) {
  return _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) void store_floats(DType dtype, void* to, int64_t at,
                                                                             __mmask16 mask, __m512 value) {
  if (dtype == DType::f32) return _mm512_mask_storeu_ps(static_cast<float*>(to) + at, mask, value);
  _mm256_mask_storeu_epi16(static_cast<uint16_t*>(to) + at, mask,
                           dtype == DType::bf16 ? rounded_words(value) : half_words(value));
}

}  // namespace headroom

#endif  // HEADROOM_HAS_AVX512
