// Products of 8-bit codes for every vector width: a 12 x 32 result in sub-tiles that fit the registers, over the whole
// depth, since sums of 32 bits are exact. Codes are packed as 16-bit numbers: vpmaddwd multiplies and adds twice as
// many of them as an instruction does f32 numbers (vpdpwssd, of AVX-512 VNNI, with the sum), and none of its sums
// saturates.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/int8_matmul.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include "hwy/highway.h"
#include "ops/cpu/int8_product.h"
#include "ops/cpu/pair_sums-inl.h"
#include "ops/stream/float_types.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kRows = kInt8Pairs.rows, kCols = kInt8Pairs.cols;
using I32 = hn::CappedTag<int32_t, 16>;
constexpr int64_t kVector = static_cast<int64_t>(hn::MaxLanes(I32()));

// Half the rows if there are 16 registers.
constexpr int kSubRows = HWY_TARGET == HWY_AVX3 ? 12 : 6;
using SubTile = hn::Vec<I32>[kSubRows][2];

HWY_INLINE void multiply_sub_tile(const Int8Tile& tile, int64_t row, int64_t col) {
  const I32 d;
  const int32_t* a = reinterpret_cast<const int32_t*>(tile.a) + row;
  const int32_t* b = reinterpret_cast<const int32_t*>(tile.b) + col;
  SubTile sums;
  HWY_UNROLL(12)
  for (int i = 0; i < kSubRows; ++i) sums[i][0] = sums[i][1] = hn::Zero(d);
  for (int64_t pair = 0; pair < tile.depth / 2; ++pair, a += kRows, b += kCols) {
    const auto left = hn::LoadU(d, b), right = hn::LoadU(d, b + kVector);
    HWY_UNROLL(12)
    for (int i = 0; i < kSubRows; ++i) {
      const auto factor = hn::Set(d, a[i]);
      sums[i][0] = hn::Add(sums[i][0], pair_sums(d, factor, left));
      sums[i][1] = hn::Add(sums[i][1], pair_sums(d, factor, right));
    }
  }
  HWY_UNROLL(12)
  for (int i = 0; i < kSubRows; ++i) {
    hn::Store(sums[i][0], d, tile.sums + (row + i) * kCols + col);
    hn::Store(sums[i][1], d, tile.sums + (row + i) * kCols + col + kVector);
  }
}

template <typename T>
void finish(const Int8Tile& tile) {
  const hn::RebindToFloat<I32> d;
  for (int64_t row = 0; row < tile.rows; ++row) {
    alignas(64) float values[kCols];
    for (int64_t col = 0; col < kCols; col += kVector) {
      const auto sums = hn::ConvertTo(d, hn::Load(I32(), tile.sums + row * kCols + col));
      const auto scaled = hn::Mul(sums, hn::LoadU(d, tile.col_scales + col));
      hn::Store(hn::Mul(scaled, hn::Set(d, tile.row_scales[row])), d, values + col);
    }
    T* c = static_cast<T*>(tile.c) + row * tile.c_stride;
    const T* addend = static_cast<const T*>(tile.addend) + (tile.addend ? row * tile.c_stride : 0);
    for (int64_t col = 0; col < tile.cols; ++col) {
      float value = values[col];
      if (tile.bias) value += tile.bias[col];
      if (tile.addend) value += static_cast<float>(addend[col]);
      c[col] = static_cast<T>(value);
    }
  }
}

void multiply_tile(const Int8Tile& tile) {
  for (int64_t row = 0; row < kRows; row += kSubRows)
    for (int64_t col = 0; col < kCols; col += 2 * kVector) multiply_sub_tile(tile, row, col);
  with_float(tile.dtype, [&](auto type) { finish<decltype(type)>(tile); });
}

using MultiplyTile = void (*)(const Int8Tile&);
MultiplyTile tile_kernel() { return multiply_tile; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(tile_kernel);

namespace {

template <int64_t width>
void pack(const Int8Operand& operand, int64_t first, int64_t last, std::byte* to, float* scales) {
  pack_int8_strips(operand, width, first, last, to, scales);
}

}  // namespace

MatmulOffer make_int8_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked) {
  if (!facts.capabilities.has(kAvx2)) return {nullptr, "the machine has no AVX2"};
  const Int8Kernel kernel{kInt8Pairs, pack<kInt8Pairs.rows>, pack<kInt8Pairs.cols>,
                          HWY_DYNAMIC_DISPATCH(tile_kernel)()};
  return make_int8_product(spec, kernel, facts, booked);
}

}  // namespace headroom
#endif
