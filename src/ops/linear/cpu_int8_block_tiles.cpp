// Products of 8-bit activations with a weight in blocks of integer codes (int8_blocks.h) on AMX tiles: a tile of sums
// of a block is [16 columns][16 rows]. Sums of a block are whole numbers, so the bits are those of the vector kernels.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "ops/cpu/amx.h"
#include "ops/linear/int8_block_kernels.h"
#include "ops/linear/raised_nibbles.h"

namespace headroom {

#ifdef HEADROOM_HAS_AMX
namespace {

using namespace int8_blocks;

constexpr int64_t kQuads = kCodesBlock / 4;            // of the codes of a block, which a tile multiplies at a time
constexpr int64_t kBlockOf = kCodesBlock * kTileRows;  // bytes of a block of a tile of x: [quad][row]
constexpr int kTogether = 4;                           // blocks whose sums are in tiles

// Tiles 0-3 hold sums, 4-5 sixteen columns of the weight, 6-7 sixteen rows of x.
constexpr amx::TileConfig block_config() {
  amx::TileConfig config = amx::eight_full_tiles();
  for (int tile : {4, 5}) config.row_bytes[tile] = kCodesBlock;
  for (int tile : {6, 7}) config.rows[tile] = kQuads;
  return config;
}
constexpr amx::TileConfig kConfig = block_config();

// Columns of the weight as rows of bytes, a block after the other.
struct TileColumns {
  const uint8_t* codes = nullptr;
  int64_t stride = 0;                            // bytes from column to column
  std::array<const float*, kTileRows> scales{};  // of each column
  int64_t shared = 1;                            // blocks for each scale
};

// The sums of kBlocks blocks, [block][column][row].
template <int kBlocks>
HEADROOM_AMX_INT8_INLINE inline void multiply_blocks(const TileColumns& w, int64_t block, const int8_t* x,
                                                     int32_t* sums) {
  const uint8_t* const codes = w.codes + block * kCodesBlock;
  _tile_zero(0);
  _tile_loadd(4, codes, w.stride);
  _tile_loadd(6, x, 64);
  _tile_dpbssd(0, 4, 6);
  if constexpr (kBlocks == kTogether) {
    _tile_zero(1);
    _tile_loadd(5, codes + kCodesBlock, w.stride);
    _tile_loadd(7, x + kBlockOf, 64);
    _tile_dpbssd(1, 5, 7);
    _tile_zero(2);
    _tile_loadd(4, codes + 2 * kCodesBlock, w.stride);
    _tile_loadd(6, x + 2 * kBlockOf, 64);
    _tile_dpbssd(2, 4, 6);
    _tile_zero(3);
    _tile_loadd(5, codes + 3 * kCodesBlock, w.stride);
    _tile_loadd(7, x + 3 * kBlockOf, 64);
    _tile_dpbssd(3, 5, 7);
  }
  constexpr int64_t kSums = kTileRows * kTileRows;
  _tile_stored(0, sums, 64);
  if constexpr (kBlocks == kTogether) {
    _tile_stored(1, sums + kSums, 64);
    _tile_stored(2, sums + 2 * kSums, 64);
    _tile_stored(3, sums + 3 * kSums, 64);
  }
  amx::order_memory();
}

// Adds the sums of a block, times both scales, to those of each column.
HEADROOM_AMX_INT8_INLINE inline void add_block(const TileColumns& w, int64_t scale, const float* row_scales,
                                               const int32_t* sums, __m512 (&total)[kTileRows]) {
  const __m512 rows = _mm512_load_ps(row_scales);
#pragma GCC unroll 16
  for (int column = 0; column < kTileRows; ++column) {
    const __m512 block = _mm512_cvtepi32_ps(_mm512_load_si512(sums + column * kTileRows));
    const __m512 both = _mm512_mul_ps(rows, _mm512_set1_ps(w.scales[static_cast<size_t>(column)][scale]));
    total[column] = _mm512_fmadd_ps(block, both, total[column]);
  }
}

// Blocks [first, last) of a tile of columns and a tile of rows. `x`: the tile's first block; sums[column] has the rows.
HEADROOM_AMX_INT8 void multiply_tile(const TileColumns& w, int64_t first, int64_t last, const int8_t* x,
                                     const float* row_scales, float* sums, int64_t column_step) {
  alignas(64) int32_t blocks[kTogether * kTileRows * kTileRows];
  __m512 total[kTileRows];
#pragma GCC unroll 16
  for (int column = 0; column < kTileRows; ++column) total[column] = _mm512_loadu_ps(sums + column * column_step);
  int64_t block = first;
  for (; block + kTogether <= last; block += kTogether) {
    multiply_blocks<kTogether>(w, block - first, x + block * kBlockOf, blocks);
    for (int64_t i = 0; i < kTogether; ++i)
      add_block(w, (block + i) / w.shared, row_scales + (block + i) * kTileRows, blocks + i * kTileRows * kTileRows,
                total);
  }
  for (; block < last; ++block) {
    multiply_blocks<1>(w, block - first, x + block * kBlockOf, blocks);
    add_block(w, block / w.shared, row_scales + block * kTileRows, blocks, total);
  }
#pragma GCC unroll 16
  for (int column = 0; column < kTileRows; ++column) _mm512_storeu_ps(sums + column * column_step, total[column]);
}

// Blocks [first, last) of sixteen columns from `column` on. Those after the last column repeat it; these, and codes of
// 4 bits, are copied to `piece`.
template <int kBits>
HEADROOM_AMX_INT8 TileColumns columns_at(const CodedOuts& weight, int64_t column, int64_t first, int64_t last,
                                         uint8_t* piece) {
  constexpr int64_t kBlockBytes = kCodesBlock * kBits / 8;
  const OutRows<kTileRows, false> outs(weight, column);
  TileColumns columns;
  columns.shared = weight.shared;
  for (int64_t i = 0; i < kTileRows; ++i) columns.scales[static_cast<size_t>(i)] = outs.scales(i);
  if (kBits == 8 && column + kTileRows <= weight.outs) {
    columns.codes = outs.codes(0) + first * kBlockBytes;
    columns.stride = weight.row_bytes;
    return columns;
  }
  columns.codes = piece;
  columns.stride = kPieceBlocks * kCodesBlock;
  for (int64_t i = 0; i < kTileRows; ++i)
    for (int64_t block = first; block < last; ++block) {
      const uint8_t* const from = outs.codes(i) + block * kBlockBytes;
      auto* const to = reinterpret_cast<__m256i*>(piece + i * columns.stride + (block - first) * kCodesBlock);
      if constexpr (kBits == 8)
        _mm256_storeu_si256(to, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
      else
        _mm256_storeu_si256(to, _mm256_sub_epi8(raised_nibbles(from), _mm256_set1_epi8(8)));
    }
  return columns;
}

template <int kBits>
HEADROOM_AMX_INT8 void many_on_tiles(const CodedRows& rows, const CodedOuts& weight, int64_t column, int16_t* piece,
                                     const BlockSums& out) {
  static_assert(kPieceOuts % kTileRows == 0);
  std::fill_n(out.sums, kPieceOuts * out.column_step, 0.0f);
  const auto* const codes = reinterpret_cast<const int8_t*>(rows.codes);
  _tile_loadconfig(&kConfig);
  for (int64_t first = 0; first < rows.blocks; first += kPieceBlocks) {
    const int64_t last = std::min(rows.blocks, first + kPieceBlocks);
    for (int64_t tile = 0; tile < kPieceOuts; tile += kTileRows) {
      if (column + tile >= weight.outs) break;
      const TileColumns columns =
          columns_at<kBits>(weight, column + tile, first, last, reinterpret_cast<uint8_t*>(piece));
      amx::order_memory();
      for (int64_t row = 0; row < rows.rows; row += kTileRows)
        multiply_tile(columns, first, last, codes + row * rows.blocks * kCodesBlock, rows.scales + row * rows.blocks,
                      out.sums + tile * out.column_step + row, out.column_step);
    }
  }
  amx::leave_tiles();
}

}  // namespace

Int8BlockKernels int8_block_tile_kernels(int bits) {
  Int8BlockKernels kernels = int8_block_vnni_kernels(bits);
  kernels.many = bits == 8 ? many_on_tiles<8> : many_on_tiles<4>;
  return kernels;
}

#else

Int8BlockKernels int8_block_tile_kernels(int) { throw InternalError("no AMX on this machine"); }

#endif

}  // namespace headroom
