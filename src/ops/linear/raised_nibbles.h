// Codes of 4 bits as bytes. Only functions marked HEADROOM_AVX512_BF16 may call this; empty unless HEADROOM_HAS_AVX512
// is defined.
#pragma once

#include "ops/cpu/avx512_bf16.h"

#ifdef HEADROOM_HAS_AVX512

namespace headroom {

// A block of 32 codes, each raised by 8 to 0 .. 15: the even elements, then the odd ones.
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) __m256i raised_nibbles(const uint8_t* codes) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)), low = _mm_set1_epi8(15);
  const __m128i even = _mm_and_si128(_mm_srli_epi16(bytes, 4), low), odd = _mm_and_si128(bytes, low);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(even), odd, 1);
}

}  // namespace headroom

#endif  // HEADROOM_HAS_AVX512
