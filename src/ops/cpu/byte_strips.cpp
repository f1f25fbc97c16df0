#include "ops/cpu/byte_strips.h"

#include <algorithm>

#include "ops/cpu/avx512_vnni.h"
#include "ops/cpu/int8_codes.h"

#ifdef HEADROOM_HAS_AVX512

namespace headroom::byte_strips {
namespace {

constexpr int64_t kPartBytes = kLanes * kStep;  // of sixteen lanes and 64 steps

// Reads 16 elements as f32, those in `mask`.
struct Elements {
  const Int8Operand& operand;

  HEADROOM_AVX512_VNNI_INLINE __m512 load(int64_t at, __mmask16 mask) const {
    const __m512 value = load_floats(operand.dtype, operand.from, at, mask);
    return operand.dtype == DType::f32 ? rounded(value) : value;
  }

 private:
  HEADROOM_AVX512_VNNI_INLINE __m512 rounded(__m512 value) const {
    if (operand.rounds == DType::bf16) return widen_bf16(rounded_words(value));
    if (operand.rounds == DType::f16) return _mm512_cvtph_ps(half_words(value));
    return value;
  }
};

// Codes as whole numbers; a lane whose inverse is 0 has zeros.
HEADROOM_AVX512_VNNI_INLINE inline __m512i codes_of(__m512 value, __m512 inverse) {
  const __mmask16 positive = _mm512_cmp_ps_mask(inverse, _mm512_setzero_ps(), _CMP_GT_OQ);
  return _mm512_cvtps_epi32(_mm512_maskz_mul_ps(positive, value, inverse));
}

// Sixteen lanes that are rows in memory: their scales, and blocks [lane][quad].
class RowLanes {
 public:
  static constexpr bool kQuadMajor = false;
  HEADROOM_AVX512_VNNI RowLanes(const Int8Operand& operand, int64_t lane, float* scales)
      : from_{operand}, lane_(lane), lanes_(std::clamp<int64_t>(operand.lanes - lane, 0, kLanes)) {
    for (int64_t i = 0; i < kLanes; ++i) {
      __m512i largest = _mm512_setzero_si512();
      for (int64_t step = 0; i < lanes_ && step < operand.depth; step += 16)
        largest = _mm512_max_epi32(largest, magnitudes(load(i, step)));
      const Int8Scale scale = int8_scale(_mm512_reduce_max_epi32(largest));
      scales[i] = scale.scale, inverses_[i] = scale.inverse;
    }
  }

  HEADROOM_AVX512_VNNI_INLINE __m512i row(int64_t i, int64_t step) const {
    if (i >= lanes_) return _mm512_setzero_si512();
    const __m512 inverse = _mm512_set1_ps(inverses_[i]);
    const auto bytes = [&](int64_t at)
                           HEADROOM_AVX512_VNNI { return _mm512_cvtepi32_epi8(codes_of(load(i, at), inverse)); };
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes(step)), bytes(step + 16), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes(step + 32)), bytes(step + 48), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }

 private:
  HEADROOM_AVX512_VNNI_INLINE __m512 load(int64_t i, int64_t step) const {
    const Int8Operand& operand = from_.operand;
    return from_.load((lane_ + i) * operand.stride + std::min(step, operand.depth), first_lanes(operand.depth - step));
  }

  Elements from_;
  int64_t lane_, lanes_;
  float inverses_[kLanes];
};

// The bits of the largest magnitude of each lane from `lane` on, where lanes are adjacent in memory; `count` is a
// multiple of 16. Many at a time, since each step is on a page of its own.
HEADROOM_AVX512_VNNI void largest_of_columns(const Int8Operand& operand, int64_t lane, int64_t count, float* bits) {
  constexpr int64_t kVectors = 8;
  const Elements from{operand};
  for (; count > 0; lane += kVectors * kLanes, count -= kVectors * kLanes, bits += kVectors * kLanes) {
    const int64_t vectors = std::min(kVectors, count / kLanes);
    __m512i largest[kVectors] = {};
    for (int64_t step = 0; step < operand.depth; ++step)
      for (int64_t i = 0; i < vectors; ++i)
        if (const __mmask16 mask = first_lanes(operand.lanes - lane - i * kLanes))
          largest[i] =
              _mm512_max_epi32(largest[i], magnitudes(from.load(step * operand.stride + lane + i * kLanes, mask)));
    for (int64_t i = 0; i < vectors; ++i) _mm512_storeu_si512(bits + i * kLanes, largest[i]);
  }
}

// Sixteen lanes that are adjacent in memory: their scales, where the bits of their largest magnitudes are at first, and
// blocks [quad][lane].
class ColumnLanes {
 public:
  static constexpr bool kQuadMajor = true;
  HEADROOM_AVX512_VNNI ColumnLanes(const Int8Operand& operand, int64_t lane, float* scales)
      : from_{operand}, lane_(lane), mask_(first_lanes(operand.lanes - lane)) {
    alignas(64) int32_t bits[kLanes];
    alignas(64) float inverses[kLanes];
    _mm512_store_si512(bits, _mm512_loadu_si512(scales));
    for (int64_t i = 0; i < kLanes; ++i) {
      const Int8Scale scale = int8_scale(bits[i]);
      scales[i] = scale.scale, inverses[i] = scale.inverse;
    }
    inverse_ = _mm512_load_ps(inverses);
  }

  HEADROOM_AVX512_VNNI_INLINE __m512i row(int64_t quad, int64_t step) const {
    const __m512i low = _mm512_set1_epi32(0xff);
    __m512i codes = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      codes = _mm512_or_si512(
          codes, _mm512_slli_epi32(_mm512_and_si512(codes_of(load(step + 4 * quad + i), inverse_), low), 8 * i));
    return codes;
  }

 private:
  HEADROOM_AVX512_VNNI_INLINE __m512 load(int64_t step) const {
    const Int8Operand& operand = from_.operand;
    if (step >= operand.depth || mask_ == 0) return _mm512_setzero_ps();
    return from_.load(step * operand.stride + lane_, mask_);
  }

  Elements from_;
  int64_t lane_;
  __mmask16 mask_;
  __m512 inverse_;
};

// One form of a strip: the order in each part, and whether it is for VNNI.
template <bool kQuads, bool kVnni>
struct Form {
  static constexpr bool kRaises = kVnni && !kQuads;  // A's codes are unsigned
  static constexpr bool kSums = kVnni && kQuads;     // behind B's codes is what that adds to sums
  static constexpr bool kQuadMajor = kQuads;
};

// Sixteen lanes of a strip: parts of 64 steps, every other kPartBytes. Returns kRaised times the sums of their codes if
// the form has them.
template <typename Lanes, typename F>
HEADROOM_AVX512_VNNI __m512i pack_lanes(const Int8Operand& operand, int64_t lane, std::byte* to, float* scales) {
  const Lanes lanes(operand, lane, scales);
  const __m512i raised = _mm512_set1_epi8(static_cast<char>(kRaised));
  __m512i sums = _mm512_setzero_si512();
  for (int64_t step = 0; step < operand.depth; step += kStep, to += 2 * kPartBytes) {
    __m512i block[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) block[i] = lanes.row(i, step);
    if constexpr (Lanes::kQuadMajor != F::kQuadMajor) transpose16(block);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      if constexpr (F::kSums) sums = _mm512_dpbusd_epi32(sums, raised, block[i]);
      _mm512_store_si512(to + 64 * i, F::kRaises ? _mm512_xor_si512(block[i], raised) : block[i]);
    }
  }
  return sums;
}

template <typename F>
HEADROOM_AVX512_VNNI void pack(const Int8Operand& operand, int64_t first, int64_t last, std::byte* to, float* scales) {
  const int64_t codes = align_up(operand.depth, kStep) * 2 * kLanes;
  const int64_t strip = codes + (F::kSums ? kInt8Vnni.b_sum_bytes() : 0);
  const auto lanes = operand.depth_major ? pack_lanes<ColumnLanes, F> : pack_lanes<RowLanes, F>;
  if (operand.depth_major) largest_of_columns(operand, 2 * first * kLanes, 2 * (last - first) * kLanes, scales);
  for (int64_t at = first; at < last; ++at, to += strip)
    for (int64_t half = 0; half < 2; ++half, scales += kLanes) {
      const __m512i sums = lanes(operand, (2 * at + half) * kLanes, to + half * kPartBytes, scales);
      if constexpr (F::kSums) _mm512_storeu_si512(to + codes + half * kLanes * 4, sums);
    }
}

HEADROOM_AVX512_VNNI void finish_half(const Int8Tile& tile, int64_t col) {
  const __mmask16 mask = first_lanes(tile.cols - col);
  const __m512 scales = _mm512_loadu_ps(tile.col_scales + col);
  const __m512 bias = tile.bias ? _mm512_maskz_loadu_ps(mask, tile.bias + col) : _mm512_setzero_ps();
  for (int64_t row = 0; row < tile.rows; ++row) {
    const int64_t at = row * tile.c_stride + col;
    const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(tile.sums + row * 2 * kLanes + col));
    __m512 value = _mm512_mul_ps(_mm512_mul_ps(sum, scales), _mm512_set1_ps(tile.row_scales[row]));
    if (tile.bias) value = _mm512_add_ps(value, bias);
    if (tile.addend) value = _mm512_add_ps(value, load_floats(tile.dtype, tile.addend, at, mask));
    store_floats(tile.dtype, tile.c, at, mask, value);
  }
}

}  // namespace

PackStrips pack_rows() { return pack<Form<false, false>>; }
PackStrips pack_quads() { return pack<Form<true, false>>; }
PackStrips pack_raised_rows() { return pack<Form<false, true>>; }
PackStrips pack_quads_and_sums() { return pack<Form<true, true>>; }

void finish(const Int8Tile& tile) {
  finish_half(tile, 0);
  if (tile.cols > kLanes) finish_half(tile, kLanes);
}

}  // namespace headroom::byte_strips

#endif
