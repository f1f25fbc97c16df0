#include "ops/cpu/int8_product.h"

#include "base/error.h"
#include "base/threads.h"
#include "ops/cpu/scratch.h"

namespace headroom {
namespace {

class Int8Product final : public Matmul {
 public:
  Int8Product(const MatmulSpec& spec, const Int8Kernel& kernel, const Int8Blocks& blocks)
      : spec_(spec), kernel_(kernel), blocks_(blocks) {}

  int64_t scratch_bytes() const override { return blocks_.total_bytes(); }

  void run(const MatmulArguments& arguments) const override {
    Carver scratch(arguments.scratch);
    Packed packed;
    packed.b = scratch.take<std::byte>(blocks_.grid.col_tiles * blocks_.b_strip());
    packed.b_scales = scratch.take<float>(blocks_.grid.col_tiles * blocks_.form.cols);
    std::byte* cells = arguments.scratch + blocks_.b_bytes();
    const Int8Operand b = right(arguments.b);
    parallel_for(blocks_.grid.col_tiles, 1, [&](int64_t begin, int64_t end, int) {
      kernel_.pack_b(b, begin, end, packed.b + begin * blocks_.b_strip(), packed.b_scales + begin * blocks_.form.cols);
    });
    parallel_for(blocks_.grid.grid_rows * blocks_.grid.grid_cols, 1, [&](int64_t begin, int64_t end, int) {
      if (kernel_.enter) kernel_.enter();
      for (int64_t cell = begin; cell < end; ++cell)
        run_cell(arguments, packed, cell, cells + cell * blocks_.cell_bytes());
      if (kernel_.leave) kernel_.leave();
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
    const Int8Form& form = blocks_.form;
    const int64_t first_row = cell / grid.grid_cols * grid.cell_rows,
                  first_col = cell % grid.grid_cols * grid.cell_cols;
    const int64_t last_row = std::min(grid.row_tiles, first_row + grid.cell_rows);
    const int64_t last_col = std::min(grid.col_tiles, first_col + grid.cell_cols);
    Carver scratch(memory);
    int32_t* sums = scratch.take<int32_t>(form.rows * form.cols);
    std::byte* strips = scratch.take<std::byte>(blocks_.row_block * blocks_.a_strip());
    float* scales = reinterpret_cast<float*>(strips + blocks_.row_block * blocks_.a_strip());
    const Int8Operand a = left(arguments.a);
    for (int64_t begin = first_row; begin < last_row; begin += blocks_.row_block) {
      const int64_t end = std::min(last_row, begin + blocks_.row_block);
      kernel_.pack_a(a, begin, end, strips, scales);
      for (int64_t col = first_col; col < last_col; ++col)
        for (int64_t row = begin; row < end; ++row) {
          Int8Tile tile = place(arguments, row, col);
          tile.a = strips + (row - begin) * blocks_.a_strip(), tile.row_scales = scales + (row - begin) * form.rows;
          tile.b = packed.b + col * blocks_.b_strip(), tile.col_scales = packed.b_scales + col * form.cols;
          tile.sums = sums;
          kernel_.multiply(tile);
        }
    }
  }

  // A tile of C.
  Int8Tile place(const MatmulArguments& arguments, int64_t row, int64_t col) const {
    const auto [rows, cols, depth] = spec_.size;
    const Int8Form& form = blocks_.form;
    const int64_t at = (row * form.rows * cols + col * form.cols) * dtype_bytes(spec_.result);
    Int8Tile tile;
    tile.depth = blocks_.depth;
    tile.c = static_cast<std::byte*>(arguments.c) + at;
    if (spec_.addend) tile.addend = static_cast<const std::byte*>(arguments.addend) + at;
    if (spec_.bias) tile.bias = arguments.bias + col * form.cols;
    tile.c_stride = cols;
    tile.dtype = spec_.result;
    tile.rows = std::min(form.rows, rows - row * form.rows);
    tile.cols = std::min(form.cols, cols - col * form.cols);
    return tile;
  }

  MatmulSpec spec_;
  Int8Kernel kernel_;
  Int8Blocks blocks_;
};

}  // namespace

MatmulOffer make_int8_product(const MatmulSpec& spec, const Int8Kernel& kernel, const DeviceFacts& facts,
                              int64_t booked) {
  if (spec.multiply != Multiply::int8) return {nullptr, "the operands are not multiplied as 8-bit codes"};
  if (spec.size.depth > kInt8Depth)
    return {nullptr, fmt::format("sums of {} products of codes may exceed 32 bits", spec.size.depth)};
  const Int8Blocks blocks = cut_int8(spec, kernel.form, facts.threads);
  if (blocks.total_bytes() > booked)
    return {nullptr, fmt::format("needs {} bytes of scratch, {} are booked", blocks.total_bytes(), booked)};
  return {std::make_unique<Int8Product>(spec, kernel, blocks), {}};
}

}  // namespace headroom
