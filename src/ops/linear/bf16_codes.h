// Codes to bf16, 32 at a time. Only functions marked HEADROOM_AVX512_BF16 may call these. The header is empty unless
// HEADROOM_HAS_AVX512 is defined.
#pragma once

#include "ops/cpu/avx512_bf16.h"

#ifdef HEADROOM_HAS_AVX512

namespace headroom {

HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) __m128i load_codes(const uint8_t* codes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
}

// Sixteen codes of 8 bits, times their scale.
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) __m512 scaled_bytes(const uint8_t* codes, __m512 scale) {
  return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_codes(codes))), scale);
}

HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) __m512i decoded_bytes(const uint8_t* codes, __m512 scale) {
  return narrow_row(scaled_bytes(codes, scale), scaled_bytes(codes + 16, scale));
}

// The 16 values of a block of 4-bit codes, rounded once, twice after each other: bit 4 of an index does not matter.
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) __m512i nibble_table(__m512 values, float scale) {
  const __m256i rounded = (__m256i)_mm512_cvtneps_pbh(_mm512_mul_ps(values, _mm512_set1_ps(scale)));
  return _mm512_inserti64x4(_mm512_castsi256_si512(rounded), rounded, 1);
}

HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) __m512i decoded_nibbles(const uint8_t* codes,
                                                                                   __m512i table) {
  const __m512i pairs = _mm512_cvtepu8_epi32(load_codes(codes));
  const __m512i words = _mm512_or_si512(_mm512_srli_epi32(pairs, 4), _mm512_slli_epi32(pairs, 16));
  return _mm512_permutexvar_epi16(words, table);
}

}  // namespace headroom

#endif  // HEADROOM_HAS_AVX512
