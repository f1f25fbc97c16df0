// Products of rows with a weight that is read as it is stored. For few rows, memory traffic decides, and the weight is
// read once; for many rows, tiles of sums stay in registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "ir/type.h"
#include "ops/kernel.h"
#include "ops/stream/float_types.h"

namespace headroom {

// y[rows, outs] = x[rows, ins] w^T [+ bias] [+ residual], of w [outs, ins] or [ins, outs]
struct RowProduct {
  const void* x = nullptr;
  const void* w = nullptr;
  const float* bias = nullptr;
  const void* residual = nullptr;  // of y's type; may be y
  void* y = nullptr;
  int64_t rows = 0, outs = 0, ins = 0;
  const void* arranged = nullptr;  // x in tiles (tile_rows.h) or blocks of rows (row_blocks.h) too; nullptr: only as it
                                   // is stored
};

// The address `elements` elements behind `data`.
inline const std::byte* behind(const void* data, int64_t elements, DType dtype) {
  return static_cast<const std::byte*>(data) + elements * dtype_bytes(dtype);
}

// The product of the rows from `first` on. `x`, `y`: the dtypes of the operands.
inline RowProduct rows_from(RowProduct product, int64_t first, DType x, DType y) {
  product.x = behind(product.x, first * product.ins, x);
  product.y = const_cast<std::byte*>(behind(product.y, first * product.outs, y));
  if (product.residual) product.residual = behind(product.residual, first * product.outs, y);
  product.rows -= first;
  product.arranged = nullptr;
  return product;
}

// Computes columns begin .. end of y. The order of each sum depends only on `ins`, so that the bits of a row do not
// depend on the other rows. No heap call; thread-safe across distinct columns.
using ColumnRange = void (*)(const RowProduct& call, int64_t begin, int64_t end);

struct RowTypes {
  DType x = DType::f32;
  DType w = DType::f32;  // x's, or f32, rounded to x's
  DType y = DType::f32;  // x's, or f32
};

// The kernel of this machine for w [outs, ins], which computes dot products; needs AVX2. The choice depends on the
// types and the capabilities.
ColumnRange dot_range(const RowTypes& types, const Capabilities& capabilities);

// The same for w [ins, outs], as sums of multiples of its rows.
ColumnRange combine_range(const RowTypes& types);

// dot_range for bf16 operands, which are multiplied in pairs; needs AVX-512 with bf16. Subnormal numbers count as zero.
// `w`: bf16, or f32, whose x is not in blocks of rows.
ColumnRange bf16_dot_range(DType w, DType y);

// The kernel for these types: what choose(x, w, y) returns for a value of each element type.
template <typename Choose>
ColumnRange range_of_types(const RowTypes& types, const Choose& choose) {
  HR_CHECK(types.w == types.x || types.w == DType::f32, "no products of {} and {}", dtype_name(types.x),
           dtype_name(types.w));
  ColumnRange range = nullptr;
  with_floats(types.x, types.y,
              [&](auto x, auto y) { range = types.w == types.x ? choose(x, x, y) : choose(x, float(), y); });
  return range;
}

// Calls body(first row, rows, first column, columns) for the tiles, at most kRows by kOuts, of a range of columns. Rows
// are taken in blocks that stay in the second-level cache.
template <int64_t kRows, int64_t kOuts, typename Body>
void each_dot_tile(int64_t rows, int64_t row_bytes, int64_t begin, int64_t end, const Body& body) {
  constexpr int64_t kBlockBytes = int64_t{1} << 19;
  const int64_t block = row_bytes <= 0 ? kRows : (kBlockBytes / row_bytes / kRows + 1) * kRows;
  for (int64_t from = 0; from < rows; from += block) {
    const int64_t to = from + block < rows ? from + block : rows;
    for (int64_t out = begin; out < end; out += kOuts)
      for (int64_t row = from; row < to; row += kRows)
        body(row, to - row < kRows ? to - row : kRows, out, end - out < kOuts ? end - out : kOuts);
  }
}

}  // namespace headroom
