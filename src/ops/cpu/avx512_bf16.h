// AVX-512 code for kernels with bf16 products: rearrangement of bf16 rows, and the exponential. Only functions marked
// HEADROOM_AVX512_BF16 may call it. Empty if HEADROOM_HAS_AVX512 is not defined.
#pragma once

#if defined(__x86_64__)
#define HEADROOM_HAS_AVX512 1

// GCC 12 warns about operands that its own intrinsics leave undefined on purpose.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#define HEADROOM_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace headroom {

HEADROOM_AVX512_BF16 inline __m512bh as_bf16(__m512i bits) { return (__m512bh)bits; }

HEADROOM_AVX512_BF16 inline __m512 widen_bf16(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// A mask of the first `count` of 32 words.
HEADROOM_AVX512_BF16 inline __mmask32 first_words(int64_t count) {
  return count >= 32 ? ~__mmask32{0} : count <= 0 ? __mmask32{0} : (__mmask32{1} << count) - 1;
}

HEADROOM_AVX512_BF16 inline __m512 widen_words(const uint16_t* from) {
  return widen_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

// Two fp32 vectors as one row of 32 bf16 columns, rounded to nearest even.
HEADROOM_AVX512_BF16 inline __m512i narrow_row(__m512 low, __m512 high) {
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// The permutation that turns [even | odd] of narrow_row(even, odd) into the words even[0], odd[0], even[1], ...
HEADROOM_AVX512_BF16 inline __m512i interleaved_halves() {
  const __m512i even = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_or_si512(even, _mm512_slli_epi32(_mm512_add_epi32(even, _mm512_set1_epi32(16)), 16));
}

// 2^f on [-1/2, 1/2]: 1 + f p(f), with p interpolating (2^f - 1) / f. Relative error 7e-6 (bf16 itself: 4e-3), or 2e-7.
enum class Exponential { coarse, fine };
template <Exponential kKind>
HEADROOM_AVX512_BF16 inline __m512 exp2_of_fraction(__m512 f) {
  const auto next = [&](__m512 p, float coefficient)
                        HEADROOM_AVX512_BF16 { return _mm512_fmadd_ps(p, f, _mm512_set1_ps(coefficient)); };
  if constexpr (kKind == Exponential::coarse) {
    __m512 p = next(_mm512_set1_ps(9.656710288545166e-3f), 5.5838282946219404e-2f);
    p = next(p, 2.402253009741223e-1f);
    return next(next(p, 6.931367338836215e-1f), 1.0f);
  } else {
    __m512 p = next(_mm512_set1_ps(1.3381302537209478e-3f), 9.66636851538283e-3f);
    p = next(p, 5.550381013796848e-2f);
    p = next(p, 2.4022349038020324e-1f);
    return next(next(p, 6.931471805599455e-1f), 1.0f);
  }
}

// 2^x for x <= 127; 0 below 2^-126.
template <Exponential kKind = Exponential::coarse>
HEADROOM_AVX512_BF16 inline __m512 fast_exp2(__m512 x) {
  const __m512 shift = _mm512_set1_ps(12582912.0f + 127.0f);  // the sum's low bits are the biased exponent
  x = _mm512_max_ps(_mm512_set1_ps(-127.0f), x);
  const __m512 rounded = _mm512_add_ps(x, shift);
  const __m512 p = exp2_of_fraction<kKind>(_mm512_sub_ps(x, _mm512_sub_ps(rounded, shift)));
  return _mm512_mul_ps(p, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(rounded), 23)));
}

// tanh(x), relative error 7e-6; the formulas are tanh_of's (ops/stream/tanh-inl.h).
HEADROOM_AVX512_BF16 inline __m512 fast_tanh(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 e = fast_exp2(_mm512_mul_ps(_mm512_abs_ps(x), _mm512_set1_ps(-2.88539008f)));
  const __m512 square = _mm512_mul_ps(x, x);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(-0.005992961254f), square, _mm512_set1_ps(0.02092414818f));
  p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(-0.05383514126f));
  p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(0.1333266348f));
  p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(-0.3333332786f));
  const __m512 near = _mm512_fmadd_ps(_mm512_mul_ps(x, square), p, x);
  const __m512 size = _mm512_div_ps(_mm512_sub_ps(one, e), _mm512_add_ps(one, e));
  const __m512 signed_size = _mm512_castsi512_ps(
      _mm512_ternarylogic_epi32(_mm512_castps_si512(size), _mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN), 0xf8));
  // NaN compares false, so it takes `near`, like small |x|.
  return _mm512_mask_mov_ps(near, _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(0.64f), _CMP_GE_OQ), signed_size);
}

// Transposes 16 x 16 32-bit elements held in r.
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) void transpose16(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// to[j][i] = load(i)[j] for 16 vectors of 32-bit elements; `to` is aligned to 64 bytes.
template <typename Load>
HEADROOM_AVX512_BF16 inline __attribute__((always_inline)) void store_turned(const Load& load, void* to) {
  __m512i block[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) block[i] = load(i);
  transpose16(block);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_store_si512(static_cast<std::byte*>(to) + 64 * i, block[i]);
}

// to[j][i] = from[i][j] for 32-bit elements; rows and columns are multiples of 16.
HEADROOM_AVX512_BF16 inline void transpose_words32(const void* from, int64_t from_row, int64_t rows, int64_t columns,
                                                   void* to, int64_t to_row) {
  for (int64_t i = 0; i < rows; i += 16) {
    for (int64_t j = 0; j < columns; j += 16) {
      __m512i block[16];
#pragma GCC unroll 16
      for (int64_t row = 0; row < 16; ++row)
        block[row] = _mm512_loadu_si512(static_cast<const int32_t*>(from) + (i + row) * from_row + j);
      transpose16(block);
#pragma GCC unroll 16
      for (int64_t row = 0; row < 16; ++row)
        _mm512_storeu_si512(static_cast<int32_t*>(to) + (j + row) * to_row + i, block[row]);
    }
  }
}

// In-lane interleaving of two rows of 32 bf16 puts column pair_column(i) into pair i of (low, high).
inline int64_t pair_column(int64_t i) { return i % 16 / 4 * 8 + i % 4 + i / 16 * 4; }

// to[j][i] = from[i][j] for bf16; rows and columns are multiples of 32.
HEADROOM_AVX512_BF16 inline void transpose_bf16(const uint16_t* from, int64_t from_row, int64_t rows, int64_t columns,
                                                uint16_t* to, int64_t to_row) {
  for (int64_t i = 0; i < rows; i += 32) {
    for (int64_t j = 0; j < columns; j += 32) {
      __m512i low[16], high[16];
#pragma GCC unroll 16
      for (int64_t pair = 0; pair < 16; ++pair) {
        const __m512i even = _mm512_loadu_si512(from + (i + 2 * pair) * from_row + j);
        const __m512i odd = _mm512_loadu_si512(from + (i + 2 * pair + 1) * from_row + j);
        low[pair] = _mm512_unpacklo_epi16(even, odd);
        high[pair] = _mm512_unpackhi_epi16(even, odd);
      }
      transpose16(low);
      transpose16(high);
#pragma GCC unroll 16
      for (int64_t row = 0; row < 16; ++row) {
        _mm512_storeu_si512(to + (j + pair_column(row)) * to_row + i, low[row]);
        _mm512_storeu_si512(to + (j + pair_column(row + 16)) * to_row + i, high[row]);
      }
    }
  }
}

// Pairs (even[c], odd[c]) in the order of columns: `first` has columns 0-15, `second` 16-31.
struct PairRow {
  __m512i first;
  __m512i second;
};
HEADROOM_AVX512_BF16 inline PairRow interleave_rows(__m512i even, __m512i odd) {
  const __m512i low = _mm512_unpacklo_epi16(even, odd), high = _mm512_unpackhi_epi16(even, odd);
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  return {_mm512_permutex2var_epi64(low, first, high), _mm512_permutex2var_epi64(low, second, high)};
}

// Stores rows of bf16 as the right operand of a product: interleaved pairs of rows. `rows` is even, `columns` a
// multiple of 32.
HEADROOM_AVX512_BF16 inline void pair_rows(const uint16_t* from, int64_t from_row, int64_t rows, int64_t columns,
                                           uint16_t* to) {
  for (int64_t i = 0; i < rows; i += 2) {
    for (int64_t j = 0; j < columns; j += 32) {
      const PairRow row = interleave_rows(_mm512_loadu_si512(from + i * from_row + j),
                                          _mm512_loadu_si512(from + (i + 1) * from_row + j));
      _mm512_storeu_si512(to + i * columns + 2 * j, row.first);
      _mm512_storeu_si512(to + i * columns + 2 * j + 32, row.second);
    }
  }
}

// Copies `rows` rows of `dim` elements, `stride` apart, to rows of `width` (dim rounded up to 32), padded with zeros;
// then zero rows up to `all`.
HEADROOM_AVX512_BF16 inline void stage_rows(const void* from, int64_t stride, int64_t rows, int64_t all, int64_t dim,
                                            uint16_t* to, int64_t width) {
  const uint16_t* source = static_cast<const uint16_t*>(from);
  const __mmask32 tail = dim == width ? ~__mmask32{0} : (__mmask32{1} << (dim % 32)) - 1;
  for (int64_t i = 0; i < rows; ++i, source += stride, to += width) {
    int64_t j = 0;
    for (; j + 32 < width; j += 32) _mm512_storeu_si512(to + j, _mm512_loadu_si512(source + j));
    _mm512_storeu_si512(to + j, _mm512_maskz_loadu_epi16(tail, source + j));
  }
  std::fill(to, to + (all - rows) * width, uint16_t{0});
}

}  // namespace headroom

#endif  // __x86_64__
