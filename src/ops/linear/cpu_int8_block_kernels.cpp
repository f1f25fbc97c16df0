// Few rows are multiplied with eight columns at a time, codes along the vector; the eight sums of a block are then
// added up across the vector together. More rows meet packed tiles, columns along the vector. vpmaddwd multiplies pairs
// of 16-bit codes and adds them; no sum of 32 products leaves 32 bits.
#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/cpu_int8_block_kernels.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "ops/cpu/int8_codes.h"
#include "ops/linear/int8_block_kernels.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

using namespace int8_blocks;

constexpr int64_t kPairs = kCodesBlock / 2;
constexpr int64_t kLanes = 8;  // columns of one vector where codes are read

using F32 = hn::CappedTag<float, 8>;
using I32 = hn::CappedTag<int32_t, 8>;
using I16 = hn::CappedTag<int16_t, 16>;
using Codes = hn::Vec<I16>;
using Sums = hn::Vec<I32>;

template <int kBits>
constexpr int64_t kBlockBytes = kCodesBlock* kBits / 8;

// Half of a block of the weight's codes.
template <int kBits>
HWY_INLINE Codes codes_at(const uint8_t* block, int half) {
  const I16 d;
  if constexpr (kBits == 8) {
    const hn::Rebind<int8_t, I16> narrow;
    return hn::PromoteTo(d, hn::LoadU(narrow, reinterpret_cast<const int8_t*>(block) + half * kPairs));
  } else {
    const hn::Rebind<uint8_t, I16> narrow;
    const hn::Rebind<uint16_t, I16> wide;
    const auto bytes = hn::PromoteTo(wide, hn::LoadU(narrow, block));
    const auto nibbles = half == 0 ? hn::ShiftRight<4>(bytes) : hn::And(bytes, hn::Set(wide, 15));
    return hn::Sub(hn::BitCast(d, nibbles), hn::Set(d, 8));
  }
}

// The sums of the products of both 16-bit halves.
template <class D>
HWY_INLINE hn::Vec<D> pair_sums(D d, hn::Vec<D> a, hn::Vec<D> b) {
  const hn::Repartition<int16_t, D> codes;
  auto odd = hn::Zero(d);
  const auto even = hn::ReorderWidenMulAccumulate(d, hn::BitCast(codes, a), hn::BitCast(codes, b), hn::Zero(d), odd);
  return hn::RearrangeToOddPlusEven(even, odd);
}

HWY_INLINE Sums add_halves(Sums a, Sums b) {
  const I32 d;
  return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
}
HWY_INLINE Sums add_pairs_of(Sums a, Sums b) {
  const I32 d;
  const hn::Repartition<int64_t, I32> wide;
  const auto x = hn::BitCast(wide, a), y = hn::BitCast(wide, b);
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, x, y)), hn::BitCast(d, hn::InterleaveUpper(wide, x, y)));
}

// Lane i: the sum of the lanes of sums[i].
HWY_INLINE Sums across(const Sums (&sums)[kLanes]) {
  const I32 d;
  const auto low = add_pairs_of(add_halves(sums[0], sums[1]), add_halves(sums[2], sums[3]));
  const auto high = add_pairs_of(add_halves(sums[4], sums[5]), add_halves(sums[6], sums[7]));
  return hn::Add(hn::ConcatLowerLower(d, high, low), hn::ConcatUpperUpper(d, high, low));
}

// Eight rows of a weight from `column` on. Without kWhole there may be fewer, and the last is repeated.
template <bool kWhole>
class EightOuts {
 public:
  EightOuts(const CodedOuts& weight, int64_t column)
      : codes_(weight.codes + column * weight.row_bytes),
        scales_(weight.scales + column * weight.row_scales),
        row_bytes_(weight.row_bytes),
        row_scales_(weight.row_scales),
        last_(weight.outs - 1 - column) {}

  HWY_INLINE const uint8_t* codes(int64_t i) const { return codes_ + row(i) * row_bytes_; }
  HWY_INLINE hn::Vec<F32> scale(int64_t at) const {
    const auto of = [&](int64_t i) { return scales_[row(i) * row_scales_ + at]; };
    return hn::Vec<F32>{_mm256_setr_ps(of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7))};
  }
  // The line behind this byte in each of the next eight rows, if those are read before it leaves the first-level cache.
  // Longer rows are found by the hardware.
  HWY_INLINE void prefetch(int64_t byte) const {
    constexpr int64_t kNear = 2048;
    if (row_bytes_ > kNear || byte % 64 != 0) return;
    for (int64_t i = 0; i < kLanes; ++i) hwy::Prefetch(codes_ + (kLanes + i) * row_bytes_ + byte);
  }

 private:
  HWY_INLINE int64_t row(int64_t i) const { return kWhole ? i : std::min(i, last_); }

  const uint8_t* codes_;
  const float* scales_;
  int64_t row_bytes_, row_scales_, last_;
};

// Calls body(the eight rows from `column` on).
template <class Body>
HWY_INLINE void with_outs(const CodedOuts& weight, int64_t column, const Body& body) {
  if (column + kLanes <= weight.outs) return body(EightOuts<true>(weight, column));
  body(EightOuts<false>(weight, column));
}

// sums += block sums x both scales.
HWY_INLINE hn::Vec<F32> add_scaled(hn::Vec<F32> sums, Sums block, float row_scale, hn::Vec<F32> scales) {
  const F32 d;
  return hn::MulAdd(hn::ConvertTo(d, block), hn::Mul(hn::Set(d, row_scale), scales), sums);
}

// The sums of the products of a block of x with eight rows.
template <int kBits, class Outs>
HWY_INLINE Sums block_sums(const Outs& outs, int64_t block, const int16_t* x) {
  const I32 d;
  const I16 d16;
  const auto first = hn::BitCast(d, hn::LoadU(d16, x)), second = hn::BitCast(d, hn::LoadU(d16, x + kPairs));
  Sums each[kLanes];
  HWY_UNROLL(8)
  for (int64_t i = 0; i < kLanes; ++i) {
    const uint8_t* const w = outs.codes(i) + block * kBlockBytes<kBits>;
    each[i] = hn::Add(pair_sums(d, hn::BitCast(d, codes_at<kBits>(w, 0)), first),
                      pair_sums(d, hn::BitCast(d, codes_at<kBits>(w, 1)), second));
  }
  return across(each);
}

// kCount: how many rows, which keeps the sum of a single one in a register; 0: rows.rows.
template <int kBits, int64_t kCount, class Outs>
HWY_INLINE void few_rows(const CodedRows& rows, const CodedOuts& weight, const Outs& outs, const BlockSums& out) {
  const int64_t count = kCount > 0 ? kCount : rows.rows;
  hn::Vec<F32> sums[kCount > 0 ? kCount : kFewRows];
  for (int64_t row = 0; row < count; ++row) sums[row] = hn::Zero(F32());
  auto scales = hn::Zero(F32());
  int64_t left = 0;  // blocks with these scales
  for (int64_t block = 0; block < rows.blocks; ++block) {
    if (left == 0) scales = outs.scale(block / weight.shared), left = weight.shared;
    --left;
    outs.prefetch(block * kBlockBytes<kBits>);
    for (int64_t row = 0; row < count; ++row) {
      const int64_t at = row * rows.blocks + block;
      const auto sum = block_sums<kBits>(outs, block, rows.codes + at * kCodesBlock);
      sums[row] = add_scaled(sums[row], sum, rows.scales[at], scales);
    }
  }
  for (int64_t row = 0; row < count; ++row) hn::StoreU(sums[row], F32(), out.sums + row * out.stride);
}

template <int kBits>
void few(const CodedRows& rows, const CodedOuts& weight, int64_t column, const BlockSums& out) {
  with_outs(weight, column, [&](const auto& outs) {
    rows.rows == 1 ? few_rows<kBits, 1>(rows, weight, outs, out) : few_rows<kBits, 0>(rows, weight, outs, out);
  });
}

HWY_INLINE void store_two(Sums low, Sums high, int32_t* first, int32_t* fifth) {
  const I32 d;
  hn::StoreU(hn::ConcatLowerLower(d, high, low), d, first);
  hn::StoreU(hn::ConcatUpperUpper(d, high, low), d, fifth);
}

// Half a block of eight columns, eight pairs of codes each: pair j of column i goes to to[j * kTileCols + i].
template <int kBits, class Outs>
HWY_INLINE void pack_half(const Outs& outs, int64_t block, int half, int32_t* to) {
  const I32 d;
  const hn::Repartition<int64_t, I32> wide;
  Sums in[kLanes], pairs[kLanes];
  for (int64_t i = 0; i < kLanes; ++i)
    in[i] = hn::BitCast(d, codes_at<kBits>(outs.codes(i) + block * kBlockBytes<kBits>, half));
  for (int64_t i = 0; i < kLanes; i += 2) {
    pairs[i] = hn::InterleaveLower(d, in[i], in[i + 1]);
    pairs[i + 1] = hn::InterleaveUpper(d, in[i], in[i + 1]);
  }
  for (int64_t part = 0; part < 2; ++part) {
    const auto a = hn::BitCast(wide, pairs[part]), b = hn::BitCast(wide, pairs[part + 2]);
    const auto e = hn::BitCast(wide, pairs[part + 4]), f = hn::BitCast(wide, pairs[part + 6]);
    int32_t* const at = to + 2 * part * kTileCols;
    store_two(hn::BitCast(d, hn::InterleaveLower(wide, a, b)), hn::BitCast(d, hn::InterleaveLower(wide, e, f)), at,
              at + 4 * kTileCols);
    store_two(hn::BitCast(d, hn::InterleaveUpper(wide, a, b)), hn::BitCast(d, hn::InterleaveUpper(wide, e, f)),
              at + kTileCols, at + 5 * kTileCols);
  }
}

// Blocks [first, last) of eight columns of a tile.
template <int kBits, class Outs>
HWY_INLINE void pack_outs(const Outs& outs, int64_t shared, int64_t first, int64_t last, const PackedPiece& to) {
  for (int64_t block = first; block < last; ++block) {
    const int64_t at = block - first;
    hn::StoreU(outs.scale(block / shared), F32(), to.scales + at * kTileCols);
    for (int half = 0; half < 2; ++half)
      pack_half<kBits>(outs, block, half, to.pairs + (at * kPairs + half * kLanes) * kTileCols);
  }
}

// Blocks [first, last) of the tile from `column` on; columns after the last repeat it.
template <int kBits>
void pack(const CodedOuts& weight, int64_t column, int64_t first, int64_t last, const PackedPiece& piece) {
  for (int64_t i = 0; i < kTileCols; i += kLanes)
    with_outs(weight, std::min(column + i, weight.outs - 1), [&](const auto& outs) {
      pack_outs<kBits>(outs, weight.shared, first, last, {piece.pairs + i, piece.scales + i});
    });
}

using Tile = hn::CappedTag<int32_t, 16>;
constexpr auto kVector = static_cast<int64_t>(hn::MaxLanes(Tile()));
using TileSums = hn::Vec<Tile>[kStripRows][2];

// Adds the products of a pair of codes.
HWY_INLINE void multiply_pair(const int32_t* a, const int32_t* b, TileSums& sums) {
  const Tile d;
  const auto left = hn::Load(d, b), right = hn::Load(d, b + kVector);
  HWY_UNROLL(4)
  for (int i = 0; i < kStripRows; ++i) {
    const auto factor = hn::Set(d, a[i]);
    sums[i][0] = hn::Add(sums[i][0], pair_sums(d, factor, left));
    sums[i][1] = hn::Add(sums[i][1], pair_sums(d, factor, right));
  }
}

// A block of a strip and two vectors of columns.
HWY_INLINE void multiply_block(const int32_t* a, const float* a_scales, const int32_t* b, const float* b_scales,
                               float* sums) {
  const Tile d;
  const hn::RebindToFloat<Tile> df;
  TileSums each;
  HWY_UNROLL(4)
  for (int i = 0; i < kStripRows; ++i) each[i][0] = each[i][1] = hn::Zero(d);
  // Two at a time: GCC copies every sum at the end of an iteration.
  for (int64_t pair = 0; pair < kPairs; pair += 2, a += 2 * kStripRows, b += 2 * kTileCols) {
    multiply_pair(a, b, each);
    multiply_pair(a + kStripRows, b + kTileCols, each);
  }
  const auto left = hn::Load(df, b_scales), right = hn::Load(df, b_scales + kVector);
  HWY_UNROLL(4)
  for (int i = 0; i < kStripRows; ++i) {
    float* const to = sums + i * kTileCols;
    const auto scale = hn::Set(df, a_scales[i]);
    hn::Store(hn::MulAdd(hn::ConvertTo(df, each[i][0]), hn::Mul(scale, left), hn::Load(df, to)), df, to);
    hn::Store(hn::MulAdd(hn::ConvertTo(df, each[i][1]), hn::Mul(scale, right), hn::Load(df, to + kVector)), df,
              to + kVector);
  }
}

void multiply_strip(const CodedRows& rows, int64_t strip, int64_t first, int64_t last, const PackedPiece& piece,
                    float* sums) {
  const auto* const codes = reinterpret_cast<const int32_t*>(rows.codes) + strip * rows.blocks * kPairs * kStripRows;
  const float* const scales = rows.scales + strip * rows.blocks * kStripRows;
  for (int64_t col = 0; col < kTileCols; col += 2 * kVector)
    for (int64_t block = first; block < last; ++block)
      multiply_block(codes + block * kPairs * kStripRows, scales + block * kStripRows,
                     piece.pairs + (block - first) * kPairs * kTileCols + col,
                     piece.scales + (block - first) * kTileCols + col, sums + col);
}

template <int kBits>
void tile(const CodedRows& rows, const CodedOuts& weight, int64_t column, const PackedPiece& piece,
          const BlockSums& out) {
  const int64_t strips = (rows.rows + kStripRows - 1) / kStripRows;
  std::fill_n(out.sums, strips * kStripRows * kTileCols, 0.0f);
  for (int64_t first = 0; first < rows.blocks; first += kPieceBlocks) {
    const int64_t last = std::min(rows.blocks, first + kPieceBlocks);
    pack<kBits>(weight, column, first, last, piece);
    for (int64_t strip = 0; strip < strips; ++strip)
      multiply_strip(rows, strip, first, last, piece, out.sums + strip * kStripRows * kTileCols);
  }
}

// Where element i of a block is among its codes.
template <int kBits>
constexpr int64_t place_of(int64_t i) {
  return kBits == 8 ? i : i / 2 + i % 2 * kPairs;
}

// A block of 32 elements. Returns its scale.
template <int kBits, typename T>
HWY_INLINE float encode_block(const T* x, int16_t* codes) {
  const F32 d;
  const I32 di;
  auto largest = hn::Zero(di);
  hn::Vec<F32> values[kCodesBlock / kLanes];
  for (int64_t i = 0; i < kCodesBlock / kLanes; ++i) {
    values[i] = load(d, x + i * kLanes);
    largest = hn::Max(largest, hn::And(hn::BitCast(di, values[i]), hn::Set(di, 0x7fffffff)));
  }
  const Int8Scale scale = int8_scale(hn::GetLane(hn::MaxOfLanes(di, largest)));
  alignas(32) int32_t wide[kCodesBlock] = {};
  if (scale.inverse > 0)
    for (int64_t i = 0; i < kCodesBlock / kLanes; ++i)
      hn::Store(hn::NearestInt(hn::Mul(values[i], hn::Set(d, scale.inverse))), di, wide + i * kLanes);
  for (int64_t i = 0; i < kCodesBlock; ++i) codes[place_of<kBits>(i)] = static_cast<int16_t>(wide[i]);
  return scale.scale;
}

template <int kBits, typename T>
void encode_few(const T* x, int64_t first, int64_t count, const CodedRows& rows) {
  for (int64_t row = first; row < first + count; ++row)
    for (int64_t block = 0; block < rows.blocks; ++block) {
      const int64_t at = row * rows.blocks + block;
      rows.scales[at] = encode_block<kBits>(x + at * kCodesBlock, rows.codes + at * kCodesBlock);
    }
}

template <int kBits, typename T>
void encode_strip(const T* x, int64_t first, int64_t count, const CodedRows& rows) {
  const int64_t at = first / kStripRows * rows.blocks;
  alignas(32) int16_t codes[kStripRows][kCodesBlock] = {};
  for (int64_t block = 0; block < rows.blocks; ++block) {
    auto* const to = reinterpret_cast<int32_t*>(rows.codes) + (at + block) * kPairs * kStripRows;
    float* const scales = rows.scales + (at + block) * kStripRows;
    for (int64_t i = 0; i < kStripRows; ++i)
      scales[i] =
          i < count ? encode_block<kBits>(x + ((first + i) * rows.blocks + block) * kCodesBlock, codes[i]) : 0.0f;
    for (int64_t i = 0; i < kStripRows; ++i)
      for (int64_t pair = 0; pair < kPairs; ++pair)
        std::memcpy(to + pair * kStripRows + i, codes[i] + 2 * pair, sizeof(int32_t));
  }
}

template <int kBits>
void encode(const void* x, DType dtype, int64_t first, int64_t count, const CodedRows& rows) {
  with_float(dtype, [&](auto type) {
    const auto* const from = static_cast<const decltype(type)*>(x);
    if (rows.few()) return encode_few<kBits>(from, first, count, rows);
    encode_strip<kBits>(from, first, count, rows);
  });
}

template <int kBits>
Int8BlockKernels of_bits() {
  return {encode<kBits>, few<kBits>, tile<kBits>};
}
Int8BlockKernels kernels_of(int bits) { return bits == 8 ? of_bits<8>() : of_bits<4>(); }

#else

Int8BlockKernels kernels_of(int) { return {}; }

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(kernels_of);

Int8BlockKernels int8_block_kernels(int bits) { return HWY_DYNAMIC_DISPATCH(kernels_of)(bits); }

}  // namespace headroom
#endif
