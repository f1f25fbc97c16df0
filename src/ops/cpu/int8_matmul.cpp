// Products of 8-bit codes for every vector width: a 12 x 32 result in sub-tiles that fit the registers, over the whole
// depth, since sums of 32 bits are exact. Codes are packed as 16-bit numbers: vpmaddwd multiplies and adds twice as
// many of them as an instruction does f32 numbers (vpdpwssd, of AVX-512 VNNI, with the sum), and none of its sums
// saturates.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/int8_matmul.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include "base/error.h"
#include "base/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/int8_codes.h"
#include "ops/cpu/int8_matmul_scratch.h"
#include "ops/cpu/int8_strips.h"
#include "ops/cpu/matmul.h"
#include "ops/cpu/pair_sums-inl.h"
#include "ops/cpu/scratch.h"
#include "ops/stream/float_types.h"

#ifndef HEADROOM_INT8_TILE
#define HEADROOM_INT8_TILE
namespace headroom {
namespace {

// c = sums scaled [+ bias] [+ addend] for a tile of rows x cols.
struct Int8Tile {
  const std::byte* a = nullptr;  // a packed strip
  const std::byte* b = nullptr;
  int64_t pairs = 0;
  int32_t* sums = nullptr;  // 12 x 32
  const float* row_scales = nullptr;
  const float* col_scales = nullptr;
  void* c = nullptr;
  const void* addend = nullptr;
  int64_t c_stride = 0;  // elements
  DType dtype = DType::f32;
  const float* bias = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
};

}  // namespace
}  // namespace headroom
#endif

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

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
  for (int64_t pair = 0; pair < tile.pairs; ++pair, a += kInt8Rows, b += kInt8Cols) {
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
    hn::Store(sums[i][0], d, tile.sums + (row + i) * kInt8Cols + col);
    hn::Store(sums[i][1], d, tile.sums + (row + i) * kInt8Cols + col + kVector);
  }
}

template <typename T>
void finish(const Int8Tile& tile) {
  const hn::RebindToFloat<I32> d;
  for (int64_t row = 0; row < tile.rows; ++row) {
    alignas(64) float values[kInt8Cols];
    for (int64_t col = 0; col < kInt8Cols; col += kVector) {
      const auto sums = hn::ConvertTo(d, hn::Load(I32(), tile.sums + row * kInt8Cols + col));
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
  for (int64_t row = 0; row < kInt8Rows; row += kSubRows)
    for (int64_t col = 0; col < kInt8Cols; col += 2 * kVector) multiply_sub_tile(tile, row, col);
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

class Int8Matmul final : public Matmul {
 public:
  Int8Matmul(const MatmulSpec& spec, const Int8Blocks& blocks)
      : spec_(spec), blocks_(blocks), multiply_(HWY_DYNAMIC_DISPATCH(tile_kernel)()) {}

  int64_t scratch_bytes() const override { return blocks_.total_bytes(); }

  void run(const MatmulArguments& arguments) const override {
    Carver scratch(arguments.scratch);
    Packed packed;
    packed.b = scratch.take<std::byte>(blocks_.grid.col_tiles * blocks_.b_strip());
    packed.b_scales = scratch.take<float>(blocks_.grid.col_tiles * kInt8Cols);
    std::byte* cells = arguments.scratch + blocks_.b_bytes();
    const Int8Operand b = right(arguments.b);
    parallel_for(blocks_.grid.col_tiles, 1, [&](int64_t begin, int64_t end, int) {
      pack_int8_strips(b, kInt8Cols, begin, end, packed.b + begin * blocks_.b_strip(),
                       packed.b_scales + begin * kInt8Cols);
    });
    parallel_for(blocks_.grid.grid_rows * blocks_.grid.grid_cols, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t cell = begin; cell < end; ++cell)
        run_cell(arguments, packed, cell, cells + cell * blocks_.cell_bytes());
    });
  }

 private:
  struct Packed {
    std::byte* b = nullptr;
    float* b_scales = nullptr;
  };

  Int8Operand left(const void* from) const {
    const auto [rows, cols, depth] = spec_.size;
    return {from, spec_.operand, DType::f32, spec_.a_transposed ? rows : depth, spec_.a_transposed, rows, depth};
  }
  Int8Operand right(const void* from) const {
    const auto [rows, cols, depth] = spec_.size;
    return {from,
            spec_.rounds_b ? DType::f32 : spec_.operand,
            spec_.rounds_b ? spec_.operand : DType::f32,
            spec_.b_transposed ? depth : cols,
            !spec_.b_transposed,
            cols,
            depth};
  }

  void run_cell(const MatmulArguments& arguments, const Packed& packed, int64_t cell, std::byte* memory) const {
    const MatmulBlocks& grid = blocks_.grid;
    const int64_t first_row = cell / grid.grid_cols * grid.cell_rows,
                  first_col = cell % grid.grid_cols * grid.cell_cols;
    const int64_t last_row = std::min(grid.row_tiles, first_row + grid.cell_rows);
    const int64_t last_col = std::min(grid.col_tiles, first_col + grid.cell_cols);
    Carver scratch(memory);
    int32_t* sums = scratch.take<int32_t>(kInt8Rows * kInt8Cols);
    std::byte* strips = scratch.take<std::byte>(blocks_.row_block * blocks_.a_strip());
    float* scales = reinterpret_cast<float*>(strips + blocks_.row_block * blocks_.a_strip());
    const Int8Operand a = left(arguments.a);
    for (int64_t begin = first_row; begin < last_row; begin += blocks_.row_block) {
      const int64_t end = std::min(last_row, begin + blocks_.row_block);
      pack_int8_strips(a, kInt8Rows, begin, end, strips, scales);
      for (int64_t col = first_col; col < last_col; ++col)
        for (int64_t row = begin; row < end; ++row) {
          Int8Tile tile = place(arguments, row, col);
          tile.a = strips + (row - begin) * blocks_.a_strip(), tile.row_scales = scales + (row - begin) * kInt8Rows;
          tile.b = packed.b + col * blocks_.b_strip(), tile.col_scales = packed.b_scales + col * kInt8Cols;
          tile.sums = sums;
          multiply_(tile);
        }
    }
  }

  // A tile of C.
  Int8Tile place(const MatmulArguments& arguments, int64_t row, int64_t col) const {
    const auto [rows, cols, depth] = spec_.size;
    const int64_t at = (row * kInt8Rows * cols + col * kInt8Cols) * dtype_bytes(spec_.result);
    Int8Tile tile;
    tile.pairs = (depth + 1) / 2;
    tile.c = static_cast<std::byte*>(arguments.c) + at;
    if (spec_.addend) tile.addend = static_cast<const std::byte*>(arguments.addend) + at;
    if (spec_.bias) tile.bias = arguments.bias + col * kInt8Cols;
    tile.c_stride = cols;
    tile.dtype = spec_.result;
    tile.rows = std::min(kInt8Rows, rows - row * kInt8Rows);
    tile.cols = std::min(kInt8Cols, cols - col * kInt8Cols);
    return tile;
  }

  MatmulSpec spec_;
  Int8Blocks blocks_;
  void (*multiply_)(const Int8Tile&);
};

}  // namespace

MatmulOffer make_int8_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked) {
  if (spec.multiply != Multiply::int8) return {nullptr, "the operands are not multiplied as 8-bit codes"};
  if (!facts.capabilities.has(kAvx2)) return {nullptr, "the machine has no AVX2"};
  if (spec.size.depth > kInt8Depth)
    return {nullptr, fmt::format("sums of {} products of codes may exceed 32 bits", spec.size.depth)};
  const Int8Blocks blocks = cut_int8(spec, facts.threads);
  if (blocks.total_bytes() > booked)
    return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", blocks.total_bytes(), booked)};
  return {std::make_unique<Int8Matmul>(spec, blocks), {}};
}

}  // namespace headroom
#endif
