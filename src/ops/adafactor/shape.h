// What an Adafactor update works on: matrices, or a vector as one row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace headroom {

struct AdafactorShape {
  bool factored = false;
  int64_t matrices = 1;
  int64_t rows = 1;
  int64_t cols = 1;

  // `dims`: of a weight; the last two are a matrix.
  explicit AdafactorShape(std::span<const int64_t> dims) : factored(dims.size() >= 2) {
    for (size_t i = 0; i < dims.size(); ++i) {
      int64_t& part = i + 1 == dims.size() ? cols : i + 2 == dims.size() ? rows : matrices;
      part = dims[i];
    }
  }
  int64_t all_rows() const { return matrices * rows; }
  int64_t all_cols() const { return matrices * cols; }

  // Offsets in the f32 scratch, in elements: a factor for each row and column, two sums for each row, and two numbers
  // for the whole weight (used on GPUs).
  int64_t row_factors() const { return 0; }
  int64_t col_factors() const { return row_factors() + align_up(all_rows(), 16); }
  int64_t row_sums() const { return col_factors() + align_up(all_cols(), 16); }
  int64_t whole() const { return row_sums() + align_up(2 * all_rows(), 16); }
  int64_t scratch_bytes() const { return 4 * (whole() + 16); }
};

}  // namespace headroom
