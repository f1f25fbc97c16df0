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
#include "ops/cpu/pair_sums-inl.h"
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

template <bool kWhole>
using EightOuts = OutRows<kLanes, kWhole>;

template <class Outs>
HWY_INLINE hn::Vec<F32> scale_at(const Outs& outs, int64_t at) {
  const auto of = [&](int64_t i) { return outs.scales(i)[at]; };
  return hn::Vec<F32>{_mm256_setr_ps(of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7))};
}

// The line behind this byte in each of the next eight rows, if those are read before it leaves the first-level cache.
// Longer rows are found by the hardware.
template <class Outs>
HWY_INLINE void prefetch_next(const Outs& outs, int64_t byte) {
  constexpr int64_t kNear = 2048;
  if (outs.row_bytes() > kNear || byte % 64 != 0) return;
  for (int64_t i = 0; i < kLanes; ++i) hwy::Prefetch(outs.next(i, byte));
}

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
    if (left == 0) scales = scale_at(outs, block / weight.shared), left = weight.shared;
    --left;
    prefetch_next(outs, block * kBlockBytes<kBits>);
    for (int64_t row = 0; row < count; ++row) {
      const int64_t at = row * rows.blocks + block;
      const auto sum = block_sums<kBits>(outs, block, rows.codes + at * kCodesBlock);
      sums[row] = add_scaled(sums[row], sum, rows.scales[at], scales);
    }
  }
  for (int64_t row = 0; row < count; ++row) hn::StoreU(sums[row], F32(), out.sums + row * out.row_step);
}

template <int kBits>
void few(const CodedRows& rows, const CodedOuts& weight, int64_t column, const BlockSums& out) {
  const int64_t end = std::min(column + kPieceOuts, weight.outs);
  BlockSums eight = out;
  for (; column < end; column += kLanes, eight.sums += kLanes)
    with_outs(weight, column, [&](const auto& outs) {
      rows.rows == 1 ? few_rows<kBits, 1>(rows, weight, outs, eight) : few_rows<kBits, 0>(rows, weight, outs, eight);
    });
}

// Blocks [first, last) of kPieceOuts columns from `column` on as 16-bit numbers, a row of kPieceBlocks blocks for each;
// columns after the last repeat it.
template <int kBits>
void widen(const CodedOuts& weight, int64_t column, int64_t first, int64_t last, int16_t* to) {
  const I16 d;
  const OutRows<kPieceOuts, false> outs(weight, column);
  for (int64_t i = 0; i < kPieceOuts; ++i, to += kPieceBlocks * kCodesBlock)
    for (int64_t block = first; block < last; ++block) {
      const uint8_t* const from = outs.codes(i) + block * kBlockBytes<kBits>;
      hn::Store(codes_at<kBits>(from, 0), d, to + (block - first) * kCodesBlock);
      hn::Store(codes_at<kBits>(from, 1), d, to + (block - first) * kCodesBlock + kPairs);
    }
}

using Tile = hn::CappedTag<int32_t, kTileRows>;
constexpr auto kVector = static_cast<int64_t>(hn::MaxLanes(Tile()));
constexpr int kVectors = static_cast<int>(kTileRows / kVector);
constexpr int kOuts = 8 / kVectors;  // columns whose sums are in registers
// Of the rows in the first kUsed vectors of a tile.
template <int kUsed>
using TileSums = hn::Vec<Tile>[kOuts][kUsed];

// Keeps a sum in its register: GCC would add up products of several pairs first, for which there are not enough.
HWY_INLINE void settle(hn::Vec<Tile>& sum) { asm("" : "+v"(sum.raw)); }

// Adds the products of a pair of codes: those of the rows at `rows`, and of the columns from `outs` on.
template <int kUsed>
HWY_INLINE void multiply_pair(const int32_t* rows, const int16_t* outs, TileSums<kUsed>& sums) {
  const Tile d;
  hn::Vec<Tile> x[kUsed];
  for (int v = 0; v < kUsed; ++v) x[v] = hn::Load(d, rows + v * kVector);
  HWY_UNROLL(8)
  for (int i = 0; i < kOuts; ++i) {
    int32_t pair;
    std::memcpy(&pair, outs + i * kPieceBlocks * kCodesBlock, sizeof(pair));
    const auto factor = hn::Set(d, pair);
    for (int v = 0; v < kUsed; ++v) {
      sums[i][v] = hn::Add(sums[i][v], pair_sums(d, factor, x[v]));
      settle(sums[i][v]);
    }
  }
}

// Scales of a block: of the rows of a tile, and where those of the columns are.
struct BlockScales {
  const float* rows = nullptr;
  const float* outs[kOuts] = {};
};

// Adds a block of kOuts columns and a tile to their f32 sums.
template <int kUsed>
HWY_INLINE void multiply_block(const int32_t* rows, const int16_t* outs, const BlockScales& scales, int64_t scale,
                               const BlockSums& to) {
  const Tile d;
  const hn::RebindToFloat<Tile> df;
  TileSums<kUsed> each;
  HWY_UNROLL(8)
  for (int i = 0; i < kOuts; ++i)
    for (int v = 0; v < kUsed; ++v) each[i][v] = hn::Zero(d);
  // Two at a time: GCC copies some sums at the end of an iteration.
  for (int64_t pair = 0; pair < kPairs; pair += 2, rows += 2 * kTileRows, outs += 4) {
    multiply_pair<kUsed>(rows, outs, each);
    multiply_pair<kUsed>(rows + kTileRows, outs + 2, each);
  }
  HWY_UNROLL(8)
  for (int i = 0; i < kOuts; ++i)
    for (int v = 0; v < kUsed; ++v) {
      float* const at = to.sums + i * to.column_step + v * kVector;
      const auto both = hn::Mul(hn::Load(df, scales.rows + v * kVector), hn::Set(df, scales.outs[i][scale]));
      hn::Store(hn::MulAdd(hn::ConvertTo(df, each[i][v]), both, hn::Load(df, at)), df, at);
    }
}

// Blocks [first, last) of kPieceOuts columns and a tile; `piece`: these blocks of the columns.
template <int kUsed>
void multiply_tile(const CodedRows& rows, int64_t tile, const CodedOuts& weight, int64_t column, int64_t first,
                   int64_t last, const int16_t* piece, const BlockSums& out) {
  const auto* const codes = reinterpret_cast<const int32_t*>(rows.codes) + tile * rows.blocks * kPairs * kTileRows;
  const float* const row_scales = rows.scales + tile * rows.blocks * kTileRows;
  const OutRows<kPieceOuts, false> outs(weight, column);
  for (int64_t i = 0; i < kPieceOuts; i += kOuts) {
    BlockScales scales;
    for (int64_t out = 0; out < kOuts; ++out) scales.outs[out] = outs.scales(i + out);
    const BlockSums sums{out.sums + tile * kTileRows + i * out.column_step, out.row_step, out.column_step};
    for (int64_t block = first; block < last; ++block) {
      scales.rows = row_scales + block * kTileRows;
      multiply_block<kUsed>(codes + block * kPairs * kTileRows,
                            piece + (i * kPieceBlocks + block - first) * kCodesBlock, scales, block / weight.shared,
                            sums);
    }
  }
}

template <int kBits>
void many(const CodedRows& rows, const CodedOuts& weight, int64_t column, int16_t* piece, const BlockSums& out) {
  std::fill_n(out.sums, kPieceOuts * out.column_step, 0.0f);
  for (int64_t first = 0; first < rows.blocks; first += kPieceBlocks) {
    const int64_t last = std::min(rows.blocks, first + kPieceBlocks);
    widen<kBits>(weight, column, first, last, piece);
    for (int64_t tile = 0; tile * kTileRows < rows.rows; ++tile) {
      const bool whole = rows.rows - tile * kTileRows > kVector;
      (whole ? multiply_tile<kVectors> : multiply_tile<1>)(rows, tile, weight, column, first, last, piece, out);
    }
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

HWY_INLINE void store_two(Sums low, Sums high, int32_t* first, int32_t* fifth) {
  const I32 d;
  hn::StoreU(hn::ConcatLowerLower(d, high, low), d, first);
  hn::StoreU(hn::ConcatUpperUpper(d, high, low), d, fifth);
}

// Eight pairs of codes of eight rows, which are kCodesBlock apart: pair j of row i goes to to[j * kTileRows + i].
HWY_INLINE void turn(const int16_t* from, int32_t* to) {
  const I32 d;
  const hn::Repartition<int64_t, I32> wide;
  Sums pairs[kLanes];
  for (int64_t i = 0; i < kLanes; i += 2) {
    const auto a = hn::BitCast(d, hn::LoadU(I16(), from + i * kCodesBlock));
    const auto b = hn::BitCast(d, hn::LoadU(I16(), from + (i + 1) * kCodesBlock));
    pairs[i] = hn::InterleaveLower(d, a, b);
    pairs[i + 1] = hn::InterleaveUpper(d, a, b);
  }
  for (int64_t part = 0; part < 2; ++part) {
    const auto a = hn::BitCast(wide, pairs[part]), b = hn::BitCast(wide, pairs[part + 2]);
    const auto e = hn::BitCast(wide, pairs[part + 4]), f = hn::BitCast(wide, pairs[part + 6]);
    int32_t* const at = to + 2 * part * kTileRows;
    store_two(hn::BitCast(d, hn::InterleaveLower(wide, a, b)), hn::BitCast(d, hn::InterleaveLower(wide, e, f)), at,
              at + 4 * kTileRows);
    store_two(hn::BitCast(d, hn::InterleaveUpper(wide, a, b)), hn::BitCast(d, hn::InterleaveUpper(wide, e, f)),
              at + kTileRows, at + 5 * kTileRows);
  }
}

template <int kBits, typename T>
void encode_tile(const T* x, int64_t first, int64_t count, const CodedRows& rows) {
  const int64_t at = first / kTileRows * rows.blocks;
  alignas(32) int16_t codes[kTileRows][kCodesBlock] = {};
  for (int64_t block = 0; block < rows.blocks; ++block) {
    auto* const to = reinterpret_cast<int32_t*>(rows.codes) + (at + block) * kPairs * kTileRows;
    float* const scales = rows.scales + (at + block) * kTileRows;
    for (int64_t i = 0; i < kTileRows; ++i)
      scales[i] =
          i < count ? encode_block<kBits>(x + ((first + i) * rows.blocks + block) * kCodesBlock, codes[i]) : 0.0f;
    for (int64_t i = 0; i < kTileRows; i += kLanes)
      for (int64_t pair = 0; pair < kPairs; pair += kLanes) turn(codes[i] + 2 * pair, to + pair * kTileRows + i);
  }
}

template <int kBits>
void encode(const void* x, DType dtype, int64_t first, int64_t count, const CodedRows& rows) {
  with_float(dtype, [&](auto type) {
    const auto* const from = static_cast<const decltype(type)*>(x);
    if (rows.few()) return encode_few<kBits>(from, first, count, rows);
    encode_tile<kBits>(from, first, count, rows);
  });
}

template <int kBits>
Int8BlockKernels of_bits() {
  return {encode<kBits>, few<kBits>, many<kBits>};
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
