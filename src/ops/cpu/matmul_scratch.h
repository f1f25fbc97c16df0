// Planned scratch of matrix products: formulas only, so that planning needs no library.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "ir/op.h"
#include "ops/cpu/capabilities.h"

namespace headroom {

// One product C[rows, cols] = A[rows, depth] B[depth, cols].
struct MatmulSize {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t depth = 0;
};

// How f32 operands are multiplied (attribute "multiply" of the ops with products). bf16: rounded to bf16 first. bf16x3:
// each operand as a sum of two bf16 numbers, with the three largest of their four products, so that about 16 bits of
// the operands count (Henry, Tang and Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for
// higher-precision computations", 2019, section II). full: in f32; on bf16 tiles as sums of three bf16 numbers, which
// have all 24 bits, with the six largest of their nine products: the omitted ones are below 2^-25 of a term. Sums are
// always f32. A machine without bf16 tiles rounds the operands in the same way and multiplies them in f32. int8, for
// operands of every dtype: as 8-bit codes with a scale for each row of A and each column of B, summed as integers
// (int8_codes.h).
enum class Multiply : uint8_t { full, bf16, bf16x3, int8 };

inline Multiply multiply_of(const Attrs& attrs) {
  const std::string_view text = attrs.text("multiply");
  if (text == "int8") return Multiply::int8;
  return text == "bf16" ? Multiply::bf16 : text == "bf16x3" ? Multiply::bf16x3 : Multiply::full;
}

// C[rows, cols] = A B [+ P Q] [+ bias] [+ addend], all dense except B; sums in f32, rounded once at the end (oneDNN
// rounds a narrow result twice if there is P Q).
struct MatmulSpec {
  MatmulSize size;
  DType operand = DType::f32;  // of A and B: f32, bf16 or f16
  bool rounds_b = false;       // only B is f32; it is rounded to `operand`, which is narrow
  Storage b_storage = {};      // of B; in blocks, it is decoded to f32 tile by tile
  Multiply multiply = Multiply::full;
  DType result = DType::f32;  // of C and the addend: f32, or the operands' narrow type
  bool a_transposed = false;  // A is stored [depth, rows]
  bool b_transposed = false;  // B is stored [cols, depth]
  bool bias = false;          // f32 [cols]
  bool addend = false;        // added to the product; may be C itself, which gives the same bits
  int64_t low_rank = 0;       // depth of P Q, in the operands' dtype; 0: none. P is stored [rows, low_rank]
  bool q_transposed = false;  // Q is stored [cols, low_rank]
};

// The tile that a kernel computes in registers, and the form of its packed operands.
struct TileTraits {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t depth_unit = 1;     // packed depth is a multiple of this
  int64_t element_bytes = 4;  // of packed operands
  bool reads_a_in_place = false;
  int64_t packed_bytes = 0;         // largest packed block of B, with strips_beside: a good part of the L2 cache
  int64_t strips_bytes = 0;         // largest group of strips of a transposed A that are packed together
  int64_t depth_most = 2048;        // largest depth of a packed block
  int64_t depth_transposed = 1024;  // the same when A is transposed
  int64_t depth_step = 320;         // a strip of A of this depth stays in the L1 cache
  int64_t strips_beside = 0;        // strips of A that the L2 cache holds too: those in use, and what is prefetched
};

constexpr TileTraits kAmxTile{32, 32, 32, 2, true, 3 << 19, 1 << 19, 2048, 512, 576, 4};
// f32 operands, Multiply::bf16
constexpr TileTraits kAmxRoundedTile{32, 32, 32, 2, false, 3 << 19, 1 << 19, 2048, 512, 576, 4};
// f32 operands, Multiply::bf16x3
constexpr TileTraits kAmxSplitTile{32, 32, 32, 4, false, 3 << 19, 1 << 19, 1024, 192, 288, 4};
// f32 operands, Multiply::full
constexpr TileTraits kAmxExactTile{32, 32, 32, 6, false, 3 << 19, 1 << 19, 576, 128, 96, 4};
constexpr TileTraits kSimdTile{12, 32, 1, 4, false, 1 << 20};
// f32 operands, Multiply::bf16x3: each is packed as two numbers
constexpr TileTraits kSimdSplitTile{12, 32, 1, 8, false, 1 << 20, 0, 1024, 512, 160};

// The tile of the vector kernels.
inline const TileTraits& simd_tile(DType operand, Multiply multiply) {
  return operand == DType::f32 && multiply == Multiply::bf16x3 ? kSimdSplitTile : kSimdTile;
}

// The tile for operands that AMX supports, else nullptr.
inline const TileTraits* amx_tile(DType operand, Multiply multiply) {
  if (operand == DType::bf16) return &kAmxTile;
  if (operand != DType::f32) return nullptr;
  if (multiply == Multiply::full) return &kAmxExactTile;
  return multiply == Multiply::bf16 ? &kAmxRoundedTile : &kAmxSplitTile;
}

// How a blocked product is cut; counts are in tiles (rows, cols) or steps (depth).
struct MatmulBlocks {
  int64_t row_tiles = 0, col_tiles = 0;             // of the whole product
  int64_t grid_rows = 1, grid_cols = 1;             // cells that run in parallel
  int64_t cell_rows = 0, cell_cols = 0;             // tiles per cell
  int64_t row_block = 0, col_block = 0;             // tiles
  int64_t depth_block = 0, depth_step = 0;          // steps
  int64_t low_rank = 0;                             // steps after the last block of the depth
  int64_t a_strips = 1;                             // strips of A packed at a time
  int64_t a_bytes = 0, b_bytes = 0, sum_bytes = 0;  // scratch of a cell: a strip, a block of B, sums
  int64_t cell_bytes() const { return a_strips * a_bytes + b_bytes + sum_bytes; }
  int64_t total_bytes() const { return grid_rows * grid_cols * cell_bytes(); }
};

namespace matmul_blocks {

constexpr int64_t kSumBytes = int64_t{1} << 20;  // sums kept between blocks of the depth

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
// The size of the pieces when `count` is cut evenly into pieces of at most `most`.
inline int64_t even_piece(int64_t count, int64_t most) {
  return ceil_div(count, ceil_div(count, std::max<int64_t>(1, most)));
}

// Divides the tiles among the threads. The cost of a cell: its tiles, and the strips that it packs (a strip of B costs
// about two tiles, one of A half a tile, or three if transposed). Elementwise ops cut tensors by rows, so they find
// what a product cut by columns in the caches of other cores; modifying it there costs about a tenth of the product's
// time. This does not apply to a weight's gradient, which nothing touches until the update.
inline void choose_grid(MatmulBlocks& blocks, int threads, bool a_transposed) {
  double least = -1;
  for (int64_t cols = 1; cols <= threads; ++cols) {
    const int64_t rows = threads / cols;
    const int64_t cell_rows = ceil_div(blocks.row_tiles, rows), cell_cols = ceil_div(blocks.col_tiles, cols);
    const double cost = static_cast<double>(cell_rows * cell_cols) + 2.0 * static_cast<double>(cell_cols) +
                        (a_transposed ? 3.0 : 0.5) * static_cast<double>(cell_rows) +
                        (cols > 1 && !a_transposed ? 0.1 * static_cast<double>(cell_rows * cell_cols) : 0);
    if (least >= 0 && cost > least) continue;
    least = cost;
    blocks.cell_rows = cell_rows;
    blocks.cell_cols = cell_cols;
  }
  blocks.grid_rows = ceil_div(blocks.row_tiles, blocks.cell_rows);
  blocks.grid_cols = ceil_div(blocks.col_tiles, blocks.cell_cols);
}

}  // namespace matmul_blocks

// Pure function of its arguments: the plan books what the kernel uses later.
inline MatmulBlocks cut_matmul(const MatmulSpec& spec, const TileTraits& tile, int threads) {
  using namespace matmul_blocks;
  const MatmulSize& size = spec.size;
  MatmulBlocks blocks;
  blocks.row_tiles = std::max<int64_t>(1, ceil_div(size.rows, tile.rows));
  blocks.col_tiles = std::max<int64_t>(1, ceil_div(size.cols, tile.cols));
  choose_grid(blocks, std::max(1, threads), spec.a_transposed);
  const int64_t depth = align_up(std::max<int64_t>(1, size.depth), tile.depth_unit);
  blocks.depth_block =
      align_up(even_piece(depth, spec.a_transposed ? tile.depth_transposed : tile.depth_most), tile.depth_unit);
  blocks.depth_step = align_up(even_piece(blocks.depth_block, tile.depth_step), tile.depth_unit);
  blocks.low_rank = align_up(spec.low_rank, tile.depth_unit);
  const int64_t packed_depth = blocks.depth_block + blocks.low_rank;
  const int64_t strip = packed_depth * tile.cols * tile.element_bytes;
  const int64_t beside = tile.strips_beside * tile.rows * packed_depth * tile.element_bytes;
  blocks.col_block = even_piece(blocks.cell_cols, (tile.packed_bytes - beside) / strip);
  blocks.row_block = blocks.cell_rows;
  int64_t kept_rows = 1;
  if (spec.result != DType::f32 && blocks.depth_block < depth) {
    const int64_t row_bytes = blocks.col_block * tile.cols * tile.rows * 4;
    kept_rows = blocks.row_block = even_piece(blocks.cell_rows, kSumBytes / row_bytes);
  }
  blocks.a_bytes = align_up(tile.rows * packed_depth * tile.element_bytes, 64);
  // Strips of a transposed A are adjacent in memory: the more are packed together, the longer the rows that are read.
  blocks.a_strips = spec.a_transposed ? even_piece(blocks.row_block, tile.strips_bytes / blocks.a_bytes) : 1;
  blocks.b_bytes = blocks.col_block * strip;
  blocks.sum_bytes = kept_rows * blocks.col_block * tile.cols * tile.rows * 4;
  return blocks;
}

// The gradient of an adapter's second matrix is tall and narrow; its A is depth-major and packs faster as the other
// operand of the transposed product.
inline bool runs_transposed(const MatmulSpec& spec) {
  return spec.a_transposed && !spec.b_transposed && !spec.bias && spec.result == DType::f32 &&
         spec.size.cols <= kAmxTile.cols && spec.size.rows > 2 * kAmxTile.rows;
}

// C^T = B^T A. The addend is added when the result is transposed back.
inline MatmulSpec transposed_product(const MatmulSpec& spec) {
  MatmulSpec other = spec;
  other.size = {spec.size.cols, spec.size.rows, spec.size.depth};
  other.addend = false;
  return other;
}

inline int64_t transposed_bytes(const MatmulSpec& spec) { return align_up(spec.size.rows * spec.size.cols * 4, 64); }

// The gradient of an adapter's first matrix, and of the second transposed: at most 64 rows, both operands depth-major,
// and a depth at which packed A stays in the L2 cache.
inline bool runs_thin(const MatmulSpec& spec) {
  return spec.operand == DType::bf16 && spec.result == DType::f32 && spec.a_transposed && !spec.b_transposed &&
         !spec.bias && spec.size.rows <= 64 && spec.size.depth <= 8192;
}

// How a thin product is divided among threads: by columns, in blocks of 32.
struct ThinCut {
  int64_t row_tiles = 0;  // tiles of 16 rows
  int64_t steps = 0;      // groups of 32 steps of the depth
  int64_t blocks = 0, cells = 0, cell_blocks = 0;
  int64_t a_bytes = 0, sum_bytes = 0;  // of one cell
  int64_t cell_bytes() const { return a_bytes + sum_bytes; }
  int64_t total_bytes() const { return cells * cell_bytes(); }
};

inline ThinCut cut_thin(const MatmulSpec& spec, int threads) {
  using namespace matmul_blocks;
  ThinCut cut;
  cut.row_tiles = ceil_div(spec.size.rows, 16);
  cut.steps = ceil_div(spec.size.depth, 32);
  cut.blocks = std::max<int64_t>(1, ceil_div(spec.size.cols, 32));
  cut.cell_blocks = ceil_div(cut.blocks, std::max(1, threads));
  cut.cells = ceil_div(cut.blocks, cut.cell_blocks);
  cut.a_bytes = ceil_div(spec.size.rows, 32) * cut.steps * 2048;
  cut.sum_bytes = cut.cell_blocks * cut.row_tiles * 2048;
  return cut;
}

inline int64_t amx_product_bytes(const MatmulSpec& spec, const TileTraits& tile, int threads) {
  return runs_thin(spec) ? cut_thin(spec, threads).total_bytes() : cut_matmul(spec, tile, threads).total_bytes();
}

// Scratch of a product on AMX tiles.
inline int64_t amx_scratch(const MatmulSpec& spec, const TileTraits& tile, int threads) {
  if (!runs_transposed(spec)) return amx_product_bytes(spec, tile, threads);
  return transposed_bytes(spec) + amx_product_bytes(transposed_product(spec), tile, threads);
}

// A copy of B in bf16.
inline int64_t rounded_bytes(const MatmulSpec& spec) { return align_up(spec.size.depth * spec.size.cols * 2, 64); }

// If B is in blocks of codes, oneDNN gets this many decoded columns at a time, about a megabyte, and computes their
// columns of C in scratch.
inline int64_t decoded_columns(const MatmulSpec& spec) {
  constexpr int64_t kBytes = int64_t{1} << 20, kUnit = 64;
  const int64_t column = std::max<int64_t>(1, spec.size.depth * dtype_bytes(spec.operand));
  return std::min(spec.size.cols, std::max(kUnit, kBytes / column / kUnit * kUnit));
}
inline int64_t decoded_bytes(const MatmulSpec& spec) {
  const int64_t columns = decoded_columns(spec);
  return align_up(spec.size.depth * columns * dtype_bytes(spec.operand), 64) +
         align_up(spec.size.rows * columns * dtype_bytes(spec.result), 64);
}

// Bytes booked for one product: the need of our own kernels. It is enough for oneDNN's workspace too, except for
// products with a transposed A added to f32 (weight gradients), for which oneDNN was seen to need up to 1.78 times as
// much. If oneDNN needs still more, it refuses. If B is f32 it gets a rounded copy, if B is in codes, decoded columns.
// `facts.gemm_workspace_cap`, if set, replaces the formula.
inline int64_t matmul_scratch(const MatmulSpec& spec, const DeviceFacts& facts) {
  if (facts.gemm_workspace_cap > 0) return facts.gemm_workspace_cap;
  if (!facts.capabilities.has(kAvx2)) return 0;
  const int64_t simd = cut_matmul(spec, simd_tile(spec.operand, spec.multiply), facts.threads).total_bytes();
  if (spec.operand == DType::f16) return simd;  // no library supports it
  const TileTraits* amx = facts.capabilities.has(kAmx) ? amx_tile(spec.operand, spec.multiply) : nullptr;
  if (amx) return std::max(simd, amx_scratch(spec, *amx, facts.threads));
  const bool library = facts.capabilities.has(kAvx512) && spec.a_transposed && spec.addend;
  int64_t copied = 0;
  if (facts.capabilities.has(kAvx512))
    copied = !spec.b_storage.dense() ? decoded_bytes(spec) : spec.rounds_b ? rounded_bytes(spec) : 0;
  return copied + (library ? simd / 5 * 9 : simd);
}

}  // namespace headroom
