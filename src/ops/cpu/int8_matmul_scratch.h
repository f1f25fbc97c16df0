// Planned scratch of products of 8-bit codes: formulas only.
#pragma once

#include <limits>

#include "ops/cpu/matmul_scratch.h"

namespace headroom {

// The depth up to which a sum of products of codes, -127 to 127, fits 32 bits.
constexpr int64_t kInt8Depth = std::numeric_limits<int32_t>::max() / (127 * 127);

constexpr int64_t kInt8Rows = 12, kInt8Cols = 32;         // of a tile
constexpr int64_t kInt8Packed = int64_t{256} << 10;       // strips of A that are packed together: half of an L2 cache
constexpr int64_t kInt8Sums = kInt8Rows * kInt8Cols * 4;  // bytes of a tile of sums

// Codes are packed as 16-bit numbers in pairs of steps, the form of the instruction that multiplies and adds pairs. B
// is packed whole, A in blocks of strips by every cell of the grid.
struct Int8Blocks {
  MatmulBlocks grid;      // row_tiles to cell_cols
  int64_t pairs = 0;      // of steps
  int64_t row_block = 0;  // strips of A packed together
  int64_t a_strip() const { return pairs * kInt8Rows * 4; }
  int64_t b_strip() const { return pairs * kInt8Cols * 4; }
  int64_t b_bytes() const { return grid.col_tiles * (b_strip() + kInt8Cols * 4); }
  int64_t cell_bytes() const { return align_up(row_block * (a_strip() + kInt8Rows * 4), 64) + kInt8Sums; }
  int64_t total_bytes() const { return b_bytes() + grid.grid_rows * grid.grid_cols * cell_bytes(); }
};

inline Int8Blocks cut_int8(const MatmulSpec& spec, int threads) {
  using namespace matmul_blocks;
  Int8Blocks blocks;
  blocks.grid.row_tiles = std::max<int64_t>(1, ceil_div(spec.size.rows, kInt8Rows));
  blocks.grid.col_tiles = std::max<int64_t>(1, ceil_div(spec.size.cols, kInt8Cols));
  choose_grid(blocks.grid, std::max(1, threads), spec.a_transposed);
  blocks.pairs = std::max<int64_t>(1, ceil_div(spec.size.depth, 2));
  blocks.row_block = even_piece(blocks.grid.cell_rows, kInt8Packed / blocks.a_strip());
  return blocks;
}

// The reference kernel, for machines without AVX2, needs none.
inline int64_t int8_scratch(const MatmulSpec& spec, const DeviceFacts& facts) {
  return facts.capabilities.has(kAvx2) ? cut_int8(spec, facts.threads).total_bytes() : 0;
}

}  // namespace headroom
