// f32 numbers as sums of bf16 numbers, packed for AMX tiles and multiplied (Henry, Tang and Heinecke, "Leveraging the
// bfloat16 artificial intelligence datatype for higher-precision computations", 2019, section II). Three parts have all
// 24 bits. For 32 rows of A or columns of B and 32 steps of the depth, the parts are kStepBytes apart.
#pragma once

#include "ops/cpu/amx.h"
#include "ops/cpu/avx512_bf16.h"

#ifdef HEADROOM_HAS_AMX

namespace headroom::amx {

// Splits 16 f32 numbers into sums of kParts numbers each, whose upper halves are bf16. Parts are rounded to nearest,
// which keeps the rest small. A number that is not finite has one part.
template <int kParts>
HEADROOM_AMX_INLINE inline void split_numbers(__m512 number, __m512i (&parts)[kParts]) {
  constexpr int kNotFinite = 0x99;  // quiet and signalling NaN, both infinities
  const __mmask16 finite = _knot_mask16(_mm512_fpclass_ps_mask(number, kNotFinite));
  const __m512i half = _mm512_set1_epi32(0x8000), upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  parts[0] = _mm512_castps_si512(number);
  parts[0] = _mm512_and_si512(_mm512_mask_add_epi32(parts[0], finite, parts[0], half), upper);
  __m512 rest = _mm512_maskz_sub_ps(finite, number, _mm512_castsi512_ps(parts[0]));
  for (int part = 1; part + 1 < kParts; ++part) {
    parts[part] = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(rest), half), upper);
    rest = _mm512_sub_ps(rest, _mm512_castsi512_ps(parts[part]));
  }
  // The rest has more than eight bits after one part, so it is rounded, to even as every machine does; after two parts
  // it fits.
  parts[kParts - 1] = _mm512_castps_si512(rest);
  if constexpr (kParts == 2) {
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(parts[1], 16), _mm512_set1_epi32(1));
    parts[1] = _mm512_add_epi32(parts[1], _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  }
}

// Stores the parts of two vectors as pairs of words. A row of a tile of A has steps i and i + 16 of a lane, one of B
// these steps of 16 lanes. Any order of the steps works if A and B use the same.
template <int kParts>
HEADROOM_AMX_INLINE inline void store_split_row(__m512 first, __m512 second, std::byte* to) {
  __m512i low[kParts], high[kParts];
  split_numbers<kParts>(first, low);
  split_numbers<kParts>(second, high);
  for (int part = 0; part < kParts; ++part)
    _mm512_store_si512(to + part * kStepBytes,
                       _mm512_mask_mov_epi16(_mm512_srli_epi32(low[part], 16), 0xaaaaaaaau, high[part]));
}

// 32 rows of memory with 32 numbers each. Only `rows` rows and the numbers in the masks exist; the rest is zero.
struct SplitBlock {
  const float* from;
  int64_t stride;
  int64_t rows;
  __mmask16 masks[2];  // of the halves of a row

  HEADROOM_AMX_INLINE __m512 load(int64_t row, int64_t half) const {
    return row < rows ? _mm512_maskz_loadu_ps(masks[half], from + row * stride + 16 * half) : _mm512_setzero_ps();
  }

  // to[column] = a column of the 16 rows from `row`, for the columns of one half.
  HEADROOM_AMX void load_columns(int64_t row, int64_t half, __m512i (&to)[16]) const {
    for (int64_t i = 0; i < 16; ++i) to[i] = _mm512_castps_si512(load(row + i, half));
    transpose16(to);
  }
};

// Rows of memory (lanes) as rows of A.
template <int kParts>
HEADROOM_AMX inline void split_rows(const SplitBlock& block, std::byte* to) {
  for (int64_t row = 0; row < 32; ++row) store_split_row<kParts>(block.load(row, 0), block.load(row, 1), to + 64 * row);
}

// Rows of memory (steps) as pairs of rows of B.
template <int kParts>
HEADROOM_AMX inline void split_pairs(const SplitBlock& block, std::byte* to) {
  for (int64_t pair = 0; pair < 16; ++pair)
    for (int64_t half = 0; half < 2; ++half)
      store_split_row<kParts>(block.load(pair, half), block.load(pair + 16, half), to + half * kTileBytes + 64 * pair);
}

// Columns of memory (lanes) as rows of A.
template <int kParts>
HEADROOM_AMX inline void split_columns(const SplitBlock& block, std::byte* to) {
  for (int64_t half = 0; half < 2; ++half) {
    __m512i first[16], second[16];
    block.load_columns(0, half, first);
    block.load_columns(16, half, second);
    for (int i = 0; i < 16; ++i)
      store_split_row<kParts>(_mm512_castsi512_ps(first[i]), _mm512_castsi512_ps(second[i]),
                              to + half * kTileBytes + 64 * i);
  }
}

// Columns of memory (steps) as pairs of rows of B.
template <int kParts>
HEADROOM_AMX inline void split_column_pairs(const SplitBlock& block, std::byte* to) {
  for (int64_t half = 0; half < 2; ++half) {
    __m512i first[16], second[16];
    block.load_columns(16 * half, 0, first);
    block.load_columns(16 * half, 1, second);
    for (int i = 0; i < 16; ++i)
      store_split_row<kParts>(_mm512_castsi512_ps(first[i]), _mm512_castsi512_ps(second[i]),
                              to + half * kTileBytes + 64 * i);
  }
}

// Tiles 4 and 5 hold a part of A, 6 and 7 a part of B.
HEADROOM_AMX inline void multiply_parts() {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

// Loads part `part` of A. The next function loads one of B, with loads that bypass the L1 cache.
HEADROOM_AMX inline void load_a_part(const std::byte* a, int64_t part) {
  _tile_loadd(4, a + part * kStepBytes, 64);
  _tile_loadd(5, a + part * kStepBytes + kTileBytes, 64);
}

HEADROOM_AMX inline void load_b_part(const std::byte* b, int64_t part) {
  _tile_stream_loadd(6, b + part * kStepBytes, 64);
  _tile_stream_loadd(7, b + part * kStepBytes + kTileBytes, 64);
}

// Multiplies 32 steps of operands in kParts parts: the products of parts i and j with i + j < kParts. Consecutive
// products differ in one operand only.
template <int kParts>
HEADROOM_AMX inline void multiply_split_step(const std::byte* a, const std::byte* b) {
  if constexpr (kParts == 3) {
    load_a_part(a, 0), load_b_part(b, 2), multiply_parts();
    load_b_part(b, 1), multiply_parts();
    load_a_part(a, 1), multiply_parts();
    load_b_part(b, 0), multiply_parts();
    load_a_part(a, 2), multiply_parts();
    load_a_part(a, 0), multiply_parts();
  } else {
    load_b_part(b, 0), load_a_part(a, 1), multiply_parts();
    load_a_part(a, 0), multiply_parts();
    load_b_part(b, 1), multiply_parts();
  }
}

}  // namespace headroom::amx

#endif
