// Products of 8-bit codes on AMX tiles: a 32 x 32 result in four tiles, 64 steps of the depth at a time. A strip of A
// has tiles [16 rows][64 codes], one of B tiles [16 quads of codes][16 columns].
#include <algorithm>

#include "ops/cpu/amx.h"
#include "ops/cpu/avx512_floats.h"
#include "ops/cpu/int8_codes.h"
#include "ops/cpu/int8_product.h"

#ifdef HEADROOM_HAS_AMX

namespace headroom {
namespace {

using amx::kTileBytes;

constexpr int64_t kLanes = 16, kQuads = 16;  // of a tile
constexpr int64_t kStep = 4 * kQuads;        // of the depth
static_assert(kInt8Tiles.rows == 2 * kLanes && kInt8Tiles.cols == 2 * kLanes && kInt8Tiles.depth_unit == kStep);

// Reads 16 elements as f32, those in `mask`.
struct Elements {
  const Int8Operand& operand;

  HEADROOM_AMX_INT8_INLINE __m512 load(int64_t at, __mmask16 mask) const {
    const __m512 value = load_floats(operand.dtype, operand.from, at, mask);
    return operand.dtype == DType::f32 ? rounded(value) : value;
  }

 private:
  HEADROOM_AMX_INT8_INLINE __m512 rounded(__m512 value) const {
    if (operand.rounds == DType::bf16) return widen_bf16(rounded_words(value));
    if (operand.rounds == DType::f16) return _mm512_cvtph_ps(half_words(value));
    return value;
  }
};

// Codes as whole numbers; a lane whose inverse is 0 has zeros.
HEADROOM_AMX_INT8_INLINE inline __m512i codes_of(__m512 value, __m512 inverse) {
  const __mmask16 positive = _mm512_cmp_ps_mask(inverse, _mm512_setzero_ps(), _CMP_GT_OQ);
  return _mm512_cvtps_epi32(_mm512_maskz_mul_ps(positive, value, inverse));
}

// Sixteen lanes that are rows in memory: their scales, and blocks [lane][quad].
class RowLanes {
 public:
  static constexpr bool kQuadMajor = false;
  HEADROOM_AMX_INT8 RowLanes(const Int8Operand& operand, int64_t lane, float* scales)
      : from_{operand}, lane_(lane), lanes_(std::clamp<int64_t>(operand.lanes - lane, 0, kLanes)) {
    for (int64_t i = 0; i < kLanes; ++i) {
      __m512i largest = _mm512_setzero_si512();
      for (int64_t step = 0; i < lanes_ && step < operand.depth; step += 16)
        largest = _mm512_max_epi32(largest, magnitudes(load(i, step)));
      const Int8Scale scale = int8_scale(_mm512_reduce_max_epi32(largest));
      scales[i] = scale.scale, inverses_[i] = scale.inverse;
    }
  }

  HEADROOM_AMX_INT8_INLINE __m512i row(int64_t i, int64_t step) const {
    if (i >= lanes_) return _mm512_setzero_si512();
    const __m512 inverse = _mm512_set1_ps(inverses_[i]);
    const auto bytes = [&](int64_t at)
                           HEADROOM_AMX_INT8 { return _mm512_cvtepi32_epi8(codes_of(load(i, at), inverse)); };
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes(step)), bytes(step + 16), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes(step + 32)), bytes(step + 48), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }

 private:
  HEADROOM_AMX_INT8_INLINE __m512 load(int64_t i, int64_t step) const {
    const Int8Operand& operand = from_.operand;
    return from_.load((lane_ + i) * operand.stride + std::min(step, operand.depth), first_lanes(operand.depth - step));
  }

  Elements from_;
  int64_t lane_, lanes_;
  float inverses_[kLanes];
};

// Sixteen lanes that are adjacent in memory: their scales, and blocks [quad][lane].
class ColumnLanes {
 public:
  static constexpr bool kQuadMajor = true;
  HEADROOM_AMX_INT8 ColumnLanes(const Int8Operand& operand, int64_t lane, float* scales)
      : from_{operand}, lane_(lane), mask_(first_lanes(operand.lanes - lane)) {
    __m512i largest = _mm512_setzero_si512();
    for (int64_t step = 0; step < operand.depth; ++step) largest = _mm512_max_epi32(largest, magnitudes(load(step)));
    alignas(64) int32_t bits[kLanes];
    alignas(64) float inverses[kLanes];
    _mm512_store_si512(bits, largest);
    for (int64_t i = 0; i < kLanes; ++i) {
      const Int8Scale scale = int8_scale(bits[i]);
      scales[i] = scale.scale, inverses[i] = scale.inverse;
    }
    inverse_ = _mm512_load_ps(inverses);
  }

  HEADROOM_AMX_INT8_INLINE __m512i row(int64_t quad, int64_t step) const {
    const __m512i low = _mm512_set1_epi32(0xff);
    __m512i codes = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      codes = _mm512_or_si512(
          codes, _mm512_slli_epi32(_mm512_and_si512(codes_of(load(step + 4 * quad + i), inverse_), low), 8 * i));
    return codes;
  }

 private:
  HEADROOM_AMX_INT8_INLINE __m512 load(int64_t step) const {
    const Int8Operand& operand = from_.operand;
    if (step >= operand.depth || mask_ == 0) return _mm512_setzero_ps();
    return from_.load(step * operand.stride + lane_, mask_);
  }

  Elements from_;
  int64_t lane_;
  __mmask16 mask_;
  __m512 inverse_;
};

// One tile of lanes of a strip: blocks of 64 steps, every other kTileBytes.
template <typename Lanes, bool kQuadMajor>
HEADROOM_AMX_INT8 void pack_lanes(const Int8Operand& operand, int64_t lane, std::byte* to, float* scales) {
  const Lanes lanes(operand, lane, scales);
  for (int64_t step = 0; step < operand.depth; step += kStep, to += 2 * kTileBytes) {
    __m512i block[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) block[i] = lanes.row(i, step);
    if constexpr (Lanes::kQuadMajor != kQuadMajor) transpose16(block);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_store_si512(to + 64 * i, block[i]);
  }
}

template <bool kQuadMajor>
void pack_strips(const Int8Operand& operand, int64_t first, int64_t last, std::byte* to, float* scales) {
  const int64_t strip = align_up(operand.depth, kStep) * 2 * kLanes;
  for (int64_t at = first; at < last; ++at, to += strip, scales += 2 * kLanes)
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t lane = (2 * at + half) * kLanes;
      (operand.depth_major
           ? pack_lanes<ColumnLanes, kQuadMajor>
           : pack_lanes<RowLanes, kQuadMajor>)(operand, lane, to + half * kTileBytes, scales + half * kLanes);
    }
}

HEADROOM_AMX_INT8 void finish_half(const Int8Tile& tile, int64_t col) {
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

HEADROOM_AMX_INT8 void multiply(const Int8Tile& given) {
  const Int8Tile tile = given;  // a copy, which stores cannot change
  amx::order_memory();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const std::byte *a = tile.a, *b = tile.b;
  for (int64_t step = 0; step < tile.depth; step += kStep, a += 2 * kTileBytes, b += 2 * kTileBytes) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, b + kTileBytes, 64);
    _tile_dpbssd(1, 4, 7);
    _tile_loadd(5, a + kTileBytes, 64);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  constexpr int64_t kRow = 2 * kLanes;
  _tile_stored(0, tile.sums, kRow * 4);
  _tile_stored(1, tile.sums + kLanes, kRow * 4);
  _tile_stored(2, tile.sums + kLanes * kRow, kRow * 4);
  _tile_stored(3, tile.sums + kLanes * kRow + kLanes, kRow * 4);
  amx::order_memory();
  finish_half(tile, 0);
  if (tile.cols > kLanes) finish_half(tile, kLanes);
}

}  // namespace

MatmulOffer make_amx_int8_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked) {
  if (!facts.capabilities.has(kAmx) || !amx::tiles_permitted()) return {nullptr, "the machine has no AMX"};
  return make_int8_product(
      spec, {kInt8Tiles, pack_strips<false>, pack_strips<true>, multiply, amx::enter_tiles, amx::leave_tiles}, facts,
      booked);
}

}  // namespace headroom

#else

namespace headroom {
MatmulOffer make_amx_int8_matmul(const MatmulSpec&, const DeviceFacts&, int64_t) {
  return {nullptr, "the machine has no AMX"};
}
}  // namespace headroom

#endif
