// Products of 8-bit activations with a weight in blocks of integer codes (int8_blocks.h) on AVX-512 VNNI, whose
// instruction multiplies unsigned bytes by signed ones: the weight's codes are raised by 128 or 8, and what that adds
// to the sum of a block, that number times the sum of x's codes, is taken off. All are whole numbers, so the bits are
// those of the other kernels.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ops/cpu/avx512_vnni.h"
#include "ops/cpu/int8_codes.h"
#include "ops/linear/int8_block_kernels.h"
#include "ops/linear/raised_nibbles.h"

namespace headroom {

#ifdef HEADROOM_HAS_AVX512
namespace {

using namespace int8_blocks;

constexpr int64_t kLanes = 16;     // columns, or rows of a tile, of a vector
constexpr int64_t kTogether = 4;   // blocks of a row that meet sixteen columns at a time
constexpr int64_t kGroupOf = 128;  // bytes of as many blocks of x, in two vectors

template <int kBits>
constexpr int64_t kBlockBytes = kCodesBlock* kBits / 8;
template <int kBits>
constexpr int32_t kRaised = kBits == 8 ? 128 : 8;

// Codes of x in the memory of CodedRows, and behind them the excess of each block. Few rows are in groups of blocks:
// for 4 bits the even elements of all blocks, then the odd ones; the last group is filled with zeros. Tiles are [block,
// four codes, row], with the excess [block, row].
struct ByteRows {
  int8_t* codes = nullptr;
  int32_t* excess = nullptr;
  int64_t stride = 0;  // bytes from row to row, or from tile to tile

  explicit ByteRows(const CodedRows& rows) : codes(reinterpret_cast<int8_t*>(rows.codes)) {
    stride = rows.few() ? align_up(rows.blocks, kTogether) * kCodesBlock : kTileRows * rows.blocks * kCodesBlock;
    const int64_t parts = rows.few() ? rows.rows : align_up(rows.rows, kTileRows) / kTileRows;
    excess = reinterpret_cast<int32_t*>(codes + parts * stride);
  }
};

template <bool kWhole>
using SixteenOuts = OutRows<kLanes, kWhole>;

// Calls body(the sixteen rows from `column` on).
template <class Body>
HEADROOM_AVX512_VNNI_INLINE inline void with_outs(const CodedOuts& weight, int64_t column, const Body& body) {
  if (column + kLanes <= weight.outs) return body(SixteenOuts<true>(weight, column));
  body(SixteenOuts<false>(weight, column));
}

// Brings the lines behind these bytes in each of the next rows to the second-level cache, which has room for them until
// they are read unless rows are long.
template <class Outs>
HEADROOM_AVX512_VNNI_INLINE inline void prefetch_next(const Outs& outs, int64_t byte, int64_t bytes) {
  constexpr int64_t kNear = 8192;
  if (outs.row_bytes() > kNear) return;
  for (int64_t line = byte; line < byte + bytes; line += 64)
    for (int64_t i = 0; i < kLanes; ++i) _mm_prefetch(reinterpret_cast<const char*>(outs.next(i, line)), _MM_HINT_T1);
}

// The scales of sixteen rows of a weight, block after block.
template <class Outs>
class OutScales {
 public:
  OutScales(const Outs& outs, int64_t shared) : outs_(outs), shared_(shared) {}

  // Those of kTogether blocks, of which `count` exist.
  HEADROOM_AVX512_VNNI_INLINE void load(int64_t block, int64_t count, __m512 (&scales)[kTogether]) {
    if (shared_ == 1 && count == kTogether) return load_each(block, scales);
    for (int64_t i = 0; i < count; ++i) {
      if (const int64_t at = (block + i) / shared_; at != at_) held_ = gather(at_ = at);
      scales[i] = held_;
    }
  }

 private:
  HEADROOM_AVX512_VNNI_INLINE __m512 gather(int64_t at) const {
    alignas(64) float each[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) each[i] = outs_.scales(i)[at];
    return _mm512_load_ps(each);
  }

  // Every block has its own: those of a row are adjacent, and are turned.
  HEADROOM_AVX512_VNNI_INLINE void load_each(int64_t block, __m512 (&scales)[kTogether]) const {
    const auto four_rows = [&](int64_t i) HEADROOM_AVX512_VNNI_INLINE {
      const auto at = [&](int64_t row) HEADROOM_AVX512_VNNI_INLINE { return _mm_loadu_ps(outs_.scales(row) + block); };
      const __m512 low = _mm512_insertf32x4(_mm512_castps128_ps512(at(i)), at(i + 4), 1);
      return _mm512_insertf32x4(_mm512_insertf32x4(low, at(i + 8), 2), at(i + 12), 3);
    };
    const __m512 a = four_rows(0), b = four_rows(1), c = four_rows(2), d = four_rows(3);
    const __m512d ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b)), AB = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
    const __m512d cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d)), CD = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
    scales[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd));
    scales[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd));
    scales[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(AB, CD));
    scales[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(AB, CD));
  }

  const Outs& outs_;
  int64_t shared_;
  int64_t at_ = -1;
  __m512 held_ = {};
};

// Sums over the four elements of each 128-bit lane: those of a, b, c and d side by side.
HEADROOM_AVX512_VNNI_INLINE inline __m512i add_lanes(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
  return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

// Even and odd 128-bit lanes of two vectors.
HEADROOM_AVX512_VNNI_INLINE inline __m512i even_lanes(__m512i a, __m512i b) { return _mm512_shuffle_i32x4(a, b, 0x88); }
HEADROOM_AVX512_VNNI_INLINE inline __m512i odd_lanes(__m512i a, __m512i b) { return _mm512_shuffle_i32x4(a, b, 0xdd); }

// A vector of a row of the weight; behind the end of a row only the bytes in `mask`.
template <bool kTail>
HEADROOM_AVX512_VNNI_INLINE inline __m512i load_codes(const uint8_t* from, __mmask64 mask) {
  return kTail ? _mm512_maskz_loadu_epi8(mask, from) : _mm512_loadu_si512(from);
}

HEADROOM_AVX512_VNNI_INLINE inline __mmask64 first_bytes(int64_t count) {
  return count >= 64 ? ~__mmask64{0} : count <= 0 ? __mmask64{0} : (__mmask64{1} << count) - 1;
}

// sums[i], lane by column: what block i of x gives with sixteen columns, before the excess is taken off. `byte`: where
// these blocks begin in a row; `count` of them exist.
template <int kBits, bool kTail, class Outs>
HEADROOM_AVX512_VNNI_INLINE inline void block_sums(const Outs& outs, int64_t byte, int64_t count, const int8_t* x,
                                                   __m512i (&sums)[kTogether]) {
  const __m512i zero = _mm512_setzero_si512();
  const __m512i first = _mm512_loadu_si512(x), second = _mm512_loadu_si512(x + 64);
  __m512i four[4];  // columns, the same blocks or halves of them in each lane
  if constexpr (kBits == 4) {
    const __m512i low = _mm512_set1_epi8(15);
    const auto products = [&](int64_t i) HEADROOM_AVX512_VNNI_INLINE {
      const __m512i codes = load_codes<kTail>(outs.codes(i) + byte, first_bytes(count * kBlockBytes<4>));
      const __m512i even = _mm512_and_si512(_mm512_srli_epi16(codes, 4), low), odd = _mm512_and_si512(codes, low);
      return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, even, first), odd, second);
    };
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      four[i] = add_lanes(products(4 * i), products(4 * i + 1), products(4 * i + 2), products(4 * i + 3));
    const __m512i even_low = even_lanes(four[0], four[1]), odd_low = odd_lanes(four[0], four[1]);
    const __m512i even_high = even_lanes(four[2], four[3]), odd_high = odd_lanes(four[2], four[3]);
    sums[0] = even_lanes(even_low, even_high), sums[1] = even_lanes(odd_low, odd_high);
    sums[2] = odd_lanes(even_low, even_high), sums[3] = odd_lanes(odd_low, odd_high);
  } else {
    const __m512i sign = _mm512_set1_epi8(-128);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const int64_t left = count * kBlockBytes<8> - 64 * half;
      const auto products = [&](int64_t i) HEADROOM_AVX512_VNNI_INLINE {
        const __m512i codes = load_codes<kTail>(outs.codes(i) + byte + 64 * half, first_bytes(left));
        return _mm512_dpbusd_epi32(zero, _mm512_xor_si512(codes, sign), half == 0 ? first : second);
      };
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i)
        four[i] = add_lanes(products(4 * i), products(4 * i + 1), products(4 * i + 2), products(4 * i + 3));
      const __m512i low = _mm512_add_epi32(even_lanes(four[0], four[1]), odd_lanes(four[0], four[1]));
      const __m512i high = _mm512_add_epi32(even_lanes(four[2], four[3]), odd_lanes(four[2], four[3]));
      sums[2 * half] = even_lanes(low, high), sums[2 * half + 1] = odd_lanes(low, high);
    }
  }
}

// kCount: how many rows, which keeps the sum of a single one in a register; 0: rows.rows.
template <int kBits, int64_t kCount, class Outs>
HEADROOM_AVX512_VNNI_INLINE inline void few_rows(const CodedRows& rows, int64_t shared, const Outs& outs,
                                                 const BlockSums& out) {
  const int64_t count = kCount > 0 ? kCount : rows.rows;
  const ByteRows bytes(rows);
  OutScales<Outs> weight(outs, shared);
  __m512 totals[kCount > 0 ? kCount : kFewRows];
  for (int64_t row = 0; row < count; ++row) totals[row] = _mm512_setzero_ps();
  const auto blocks = [&]<bool kTail>(int64_t block, int64_t existing) HEADROOM_AVX512_VNNI_INLINE {
    __m512 scales[kTogether];
    weight.load(block, existing, scales);
    for (int64_t row = 0; row < count; ++row) {
      __m512i sums[kTogether];
      block_sums<kBits, kTail>(outs, block * kBlockBytes<kBits>, existing,
                               bytes.codes + row * bytes.stride + block * kCodesBlock, sums);
      const int64_t at = row * rows.blocks + block;
      const auto add = [&](int64_t i) HEADROOM_AVX512_VNNI_INLINE {
        const __m512 products = _mm512_cvtepi32_ps(_mm512_sub_epi32(sums[i], _mm512_set1_epi32(bytes.excess[at + i])));
        const __m512 both = _mm512_mul_ps(_mm512_set1_ps(rows.scales[at + i]), scales[i]);
        totals[row] = _mm512_fmadd_ps(products, both, totals[row]);
      };
#pragma GCC unroll 4
      for (int64_t i = 0; i < kTogether; ++i)
        if (!kTail || i < existing) add(i);
    }
  };
  int64_t block = 0;
  for (; block + kTogether <= rows.blocks; block += kTogether) {
    prefetch_next(outs, block * kBlockBytes<kBits>, kTogether * kBlockBytes<kBits>);
    blocks.template operator()<false>(block, kTogether);
  }
  if (block < rows.blocks) blocks.template operator()<true>(block, rows.blocks - block);
  for (int64_t row = 0; row < count; ++row) _mm512_storeu_ps(out.sums + row * out.row_step, totals[row]);
}

template <int kBits>
HEADROOM_AVX512_VNNI void few(const CodedRows& rows, const CodedOuts& weight, int64_t column, const BlockSums& out) {
  const int64_t end = std::min(column + kPieceOuts, weight.outs);
  BlockSums sixteen = out;
  for (; column < end; column += kLanes, sixteen.sums += kLanes)
    with_outs(weight, column, [&](const auto& outs) HEADROOM_AVX512_VNNI_INLINE {
      rows.rows == 1 ? few_rows<kBits, 1>(rows, weight.shared, outs, sixteen)
                     : few_rows<kBits, 0>(rows, weight.shared, outs, sixteen);
    });
}

// Blocks [first, last) of kPieceOuts columns from `column` on as raised codes, a row of kPieceBlocks blocks for each;
// columns after the last repeat it.
template <int kBits>
HEADROOM_AVX512_VNNI void raise(const CodedOuts& weight, int64_t column, int64_t first, int64_t last, uint8_t* to) {
  const OutRows<kPieceOuts, false> outs(weight, column);
  for (int64_t i = 0; i < kPieceOuts; ++i, to += kPieceBlocks * kCodesBlock)
    for (int64_t block = first; block < last; ++block) {
      const uint8_t* const from = outs.codes(i) + block * kBlockBytes<kBits>;
      auto* const block_to = reinterpret_cast<__m256i*>(to + (block - first) * kCodesBlock);
      if constexpr (kBits == 8)
        _mm256_store_si256(block_to, _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)),
                                                      _mm256_set1_epi8(-128)));
      else
        _mm256_store_si256(block_to, raised_nibbles(from));
    }
}

// Adds a block of sixteen columns and a tile to their f32 sums. `x`: the block of the tile; `outs`: that of the first
// column.
HEADROOM_AVX512_VNNI_INLINE inline void multiply_block(const int8_t* x, __m512i excess, const uint8_t* outs,
                                                       __m512 row_scales, const float* const (&scales)[kLanes],
                                                       int64_t scale, const BlockSums& to) {
  __m512i sums[kLanes];
  const __m512i start = _mm512_sub_epi32(_mm512_setzero_si512(), excess);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) sums[i] = start;
  for (int64_t quad = 0; quad < kCodesBlock; quad += 4, x += 4 * kTileRows, outs += 4) {
    const __m512i rows = _mm512_load_si512(x);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      int32_t codes;
      std::memcpy(&codes, outs + i * kPieceBlocks * kCodesBlock, sizeof(codes));
      sums[i] = _mm512_dpbusd_epi32(sums[i], _mm512_set1_epi32(codes), rows);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    float* const at = to.sums + i * to.column_step;
    const __m512 both = _mm512_mul_ps(row_scales, _mm512_set1_ps(scales[i][scale]));
    _mm512_store_ps(at, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[i]), both, _mm512_load_ps(at)));
  }
}

// Blocks [first, last) of sixteen columns from `column` on and all tiles. `piece`: these blocks of the columns.
HEADROOM_AVX512_VNNI void multiply_columns(const CodedRows& rows, const CodedOuts& weight, int64_t column,
                                           int64_t first, int64_t last, const uint8_t* piece, const BlockSums& out) {
  const ByteRows bytes(rows);
  const float* scales[kLanes];
  const SixteenOuts<false> outs(weight, column);
  for (int64_t i = 0; i < kLanes; ++i) scales[i] = outs.scales(i);
  for (int64_t row = 0; row < rows.rows; row += kTileRows) {
    const int8_t* const codes = bytes.codes + row / kTileRows * bytes.stride;
    const BlockSums sums{out.sums + row, out.row_step, out.column_step};
    for (int64_t block = first; block < last; ++block) {
      const int64_t at = row * rows.blocks + block * kTileRows;
      multiply_block(codes + block * kCodesBlock * kTileRows, _mm512_load_si512(bytes.excess + at),
                     piece + (block - first) * kCodesBlock, _mm512_load_ps(rows.scales + at), scales,
                     block / weight.shared, sums);
    }
  }
}

template <int kBits>
HEADROOM_AVX512_VNNI void many(const CodedRows& rows, const CodedOuts& weight, int64_t column, int16_t* memory,
                               const BlockSums& out) {
  static_assert(kPieceOuts % kLanes == 0 && kTileRows == kLanes);
  std::fill_n(out.sums, kPieceOuts * out.column_step, 0.0f);
  auto* const piece = reinterpret_cast<uint8_t*>(memory);
  for (int64_t first = 0; first < rows.blocks; first += kPieceBlocks) {
    const int64_t last = std::min(rows.blocks, first + kPieceBlocks);
    raise<kBits>(weight, column, first, last, piece);
    for (int64_t i = 0; i < kPieceOuts && column + i < weight.outs; i += kLanes)
      multiply_columns(rows, weight, column + i, first, last, piece + i * kPieceBlocks * kCodesBlock,
                       {out.sums + i * out.column_step, out.row_step, out.column_step});
  }
}

// The codes of 32 elements, in the order of those of the weight, their sum and their scale.
struct EncodedBlock {
  __m128i first, second;
  int32_t sum;
  float scale;
};

template <int kBits>
HEADROOM_AVX512_VNNI_INLINE inline EncodedBlock encode_block(const void* x, DType dtype, int64_t at) {
  constexpr __mmask16 kAll = 0xffff;
  const __m512 low = load_floats(dtype, x, at, kAll), high = load_floats(dtype, x, at + 16, kAll);
  const __m512i largest = _mm512_max_epi32(magnitudes(low), magnitudes(high));
  const Int8Scale scale = int8_scale(_mm512_reduce_max_epi32(largest));
  EncodedBlock block{_mm_setzero_si128(), _mm_setzero_si128(), 0, scale.scale};
  if (scale.inverse <= 0) return block;
  const __m512 inverse = _mm512_set1_ps(scale.inverse);
  const __m512i first = _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse)),
                second = _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse));
  block.sum = _mm512_reduce_add_epi32(_mm512_add_epi32(first, second));
  block.first = _mm512_cvtepi32_epi8(first), block.second = _mm512_cvtepi32_epi8(second);
  if constexpr (kBits == 4) {
    const __m128i even_first = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const __m128i a = _mm_shuffle_epi8(block.first, even_first), b = _mm_shuffle_epi8(block.second, even_first);
    block.first = _mm_unpacklo_epi64(a, b);
    block.second = _mm_unpackhi_epi64(a, b);
  }
  return block;
}

HEADROOM_AVX512_VNNI_INLINE inline void store_codes(void* to, __m128i codes) {
  _mm_storeu_si128(static_cast<__m128i*>(to), codes);
}

// One of a few rows.
template <int kBits>
HEADROOM_AVX512_VNNI void encode_row(const void* x, DType dtype, int64_t row, const CodedRows& rows) {
  const ByteRows bytes(rows);
  int8_t* const codes = bytes.codes + row * bytes.stride;
  constexpr int64_t kHalf = kCodesBlock / 2;
  if (rows.blocks % kTogether != 0) std::memset(codes + bytes.stride - kGroupOf, 0, kGroupOf);
  for (int64_t block = 0; block < rows.blocks; ++block) {
    const int64_t at = row * rows.blocks + block;
    const EncodedBlock encoded = encode_block<kBits>(x, dtype, at * kCodesBlock);
    int8_t* const group = codes + block / kTogether * kGroupOf;
    const int64_t place = block % kTogether * (kBits == 8 ? kCodesBlock : kHalf);
    store_codes(group + place, encoded.first);
    store_codes(group + place + (kBits == 8 ? kHalf : kGroupOf / 2), encoded.second);
    rows.scales[at] = encoded.scale;
    bytes.excess[at] = encoded.sum * kRaised<kBits>;
  }
}

// A tile of rows, of which `count` exist.
template <int kBits>
HEADROOM_AVX512_VNNI void encode_tile(const void* x, DType dtype, int64_t first, int64_t count, const CodedRows& rows) {
  constexpr int64_t kQuads = kCodesBlock / 4;
  const ByteRows bytes(rows);
  auto* to = reinterpret_cast<int32_t*>(bytes.codes + first / kTileRows * bytes.stride);
  alignas(16) int32_t codes[kTileRows][kQuads] = {};
  for (int64_t block = 0; block < rows.blocks; ++block, to += kQuads * kTileRows) {
    const int64_t scales = first * rows.blocks + block * kTileRows;
    for (int64_t i = 0; i < kTileRows; ++i) {
      EncodedBlock encoded{_mm_setzero_si128(), _mm_setzero_si128(), 0, 0};
      if (i < count) encoded = encode_block<kBits>(x, dtype, ((first + i) * rows.blocks + block) * kCodesBlock);
      store_codes(codes[i], encoded.first);
      store_codes(codes[i] + kQuads / 2, encoded.second);
      rows.scales[scales + i] = encoded.scale;
      bytes.excess[scales + i] = encoded.sum * kRaised<kBits>;
    }
    for (int64_t quad = 0; quad < kQuads; ++quad)
      for (int64_t i = 0; i < kTileRows; ++i) to[quad * kTileRows + i] = codes[i][quad];
  }
}

template <int kBits>
void encode(const void* x, DType dtype, int64_t first, int64_t count, const CodedRows& rows) {
  if (!rows.few()) return encode_tile<kBits>(x, dtype, first, count, rows);
  for (int64_t row = first; row < first + count; ++row) encode_row<kBits>(x, dtype, row, rows);
}

// y = sums [+ bias] [+ residual] for some columns of all rows, whose sums are turned in blocks of 16 x 16.
HEADROOM_AVX512_VNNI void finish_tiles(const RowProduct& product, DType dtype, int64_t column, int64_t count,
                                       const BlockSums& from) {
  for (int64_t first = 0; first < count; first += kTileRows) {
    const __mmask16 mask = first_lanes(count - first);
    const int64_t out = column + first;
    const __m512 bias = product.bias ? _mm512_maskz_loadu_ps(mask, product.bias + out) : _mm512_setzero_ps();
    for (int64_t row = 0; row < product.rows; row += kTileRows) {
      alignas(64) float sums[kTileRows * kTileRows];
      const float* const columns = from.sums + first * from.column_step + row;
      store_turned([&](int i) HEADROOM_AVX512_BF16 { return _mm512_loadu_si512(columns + i * from.column_step); },
                   sums);
      for (int64_t i = 0; i < std::min(kTileRows, product.rows - row); ++i) {
        const int64_t at = (row + i) * product.outs + out;
        __m512 sum = _mm512_load_ps(sums + i * kTileRows);
        if (product.bias) sum = _mm512_add_ps(sum, bias);
        if (product.residual) sum = _mm512_add_ps(sum, load_floats(dtype, product.residual, at, mask));
        store_floats(dtype, product.y, at, mask, sum);
      }
    }
  }
}

template <int kBits>
Int8BlockKernels of_bits() {
  return {encode<kBits>, few<kBits>, many<kBits>, finish_tiles};
}

}  // namespace

Int8BlockKernels int8_block_vnni_kernels(int bits) { return bits == 8 ? of_bits<8>() : of_bits<4>(); }

#else

Int8BlockKernels int8_block_vnni_kernels(int) { throw InternalError("no AVX-512 VNNI on this machine"); }

#endif

}  // namespace headroom
