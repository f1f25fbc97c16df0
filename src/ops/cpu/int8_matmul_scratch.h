// Planned scratch of products of 8-bit codes: formulas only.
#pragma once

#include <limits>

#include "ops/cpu/matmul_scratch.h"

namespace headroom {

// The depth up to which a sum of products of codes, -127 to 127, fits 32 bits.
constexpr int64_t kInt8Depth = std::numeric_limits<int32_t>::max() / (127 * 127);

constexpr int64_t kInt8Packed = int64_t{256} << 10;  // strips of A that are packed together: half of an L2 cache

// The tile of a kernel, and the form of its packed codes.
struct Int8Form {
  int64_t rows = 0, cols = 0;
  int64_t depth_unit = 1;  // packed depth is a multiple of this
  int64_t code_bytes = 1;
  bool b_sums = false;  // behind each strip of B is a 32-bit sum for each of its columns
  constexpr int64_t b_sum_bytes() const { return b_sums ? cols * 4 : 0; }
};
// Pairs of steps as 16-bit numbers, the form of the instruction that multiplies and adds pairs.
constexpr Int8Form kInt8Pairs{12, 32, 2, 2};
constexpr Int8Form kInt8Tiles{32, 32, 64, 1};  // of AMX
constexpr Int8Form kInt8Vnni{32, 32, 64, 1, true};

// B is packed whole, A in blocks of strips by every cell of the grid.
struct Int8Blocks {
  Int8Form form;
  MatmulBlocks grid;      // row_tiles to cell_cols
  int64_t depth = 0;      // packed
  int64_t row_block = 0;  // strips of A packed together
  int64_t a_strip() const { return depth * form.rows * form.code_bytes; }
  int64_t b_strip() const { return depth * form.cols * form.code_bytes + form.b_sum_bytes(); }
  int64_t b_bytes() const { return grid.col_tiles * (b_strip() + form.cols * 4); }
  int64_t sum_bytes() const { return form.rows * form.cols * 4; }
  int64_t cell_bytes() const { return align_up(row_block * (a_strip() + form.rows * 4), 64) + sum_bytes(); }
  int64_t total_bytes() const { return b_bytes() + grid.grid_rows * grid.grid_cols * cell_bytes(); }
};

inline Int8Blocks cut_int8(const MatmulSpec& spec, const Int8Form& form, int threads) {
  using namespace matmul_blocks;
  Int8Blocks blocks;
  blocks.form = form;
  blocks.grid.row_tiles = std::max<int64_t>(1, ceil_div(spec.size.rows, form.rows));
  blocks.grid.col_tiles = std::max<int64_t>(1, ceil_div(spec.size.cols, form.cols));
  choose_grid(blocks.grid, std::max(1, threads), spec.a_transposed);
  blocks.depth = align_up(std::max<int64_t>(1, spec.size.depth), form.depth_unit);
  blocks.row_block = even_piece(blocks.grid.cell_rows, kInt8Packed / blocks.a_strip());
  return blocks;
}

// The reference kernel, for machines without AVX2, needs none.
inline int64_t int8_scratch(const MatmulSpec& spec, const DeviceFacts& facts) {
  if (!facts.capabilities.has(kAvx2)) return 0;
  const auto of = [&](const Int8Form& form) { return cut_int8(spec, form, facts.threads).total_bytes(); };
  int64_t bytes = of(kInt8Pairs);
  if (facts.capabilities.has(kAvx512Bf16)) bytes = std::max(bytes, of(kInt8Vnni));
  if (facts.capabilities.has(kAmx)) bytes = std::max(bytes, of(kInt8Tiles));
  return bytes;
}

}  // namespace headroom
