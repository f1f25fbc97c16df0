// Which keys the columns of a mask see, in AVX-512. Only functions marked HEADROOM_AVX512_BF16 may call it.
#pragma once

#include "ops/attention/forward_driver.h"
#include "ops/cpu/avx512_bf16.h"

namespace headroom {

// Columns of a mask of 16 that starts at `first`: column c is set when begin + c <= row < end + c.
HEADROOM_AVX512_BF16 inline __mmask16 columns_seeing(int32_t row, int32_t first, int32_t begin, int32_t end) {
  const __m512i column = _mm512_add_epi32(_mm512_set1_epi32(first),
                                          _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  return _mm512_cmpgt_epi32_mask(column, _mm512_set1_epi32(row - end)) &
         _mm512_cmple_epi32_mask(column, _mm512_set1_epi32(row - begin));
}

// The same for the columns of a step from `first` on.
HEADROOM_AVX512_BF16 inline __mmask16 columns_seeing(int32_t row, int32_t first, const StripStep& step) {
  const __mmask16 seen = columns_seeing(row, first, step.visible_begin, step.visible_end);
  if (!step.segmented) return seen;
  return seen & _mm512_cmple_epi32_mask(_mm512_loadu_si512(step.starts.data() + first), _mm512_set1_epi32(row));
}

}  // namespace headroom
