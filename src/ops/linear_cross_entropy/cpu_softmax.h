// Softmax, loss and gradient over rows of logits.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/threads.h"
#include "ir/dtype.h"
#include "ops/linear_cross_entropy/row_softmax.h"
#include "ops/linear_cross_entropy/shape.h"

namespace headroom {

// Rows of logits of one chunk; `first_row` is the index of its first row among all rows.
struct LossRows {
  float* logits = nullptr;
  int64_t rows = 0;
  int64_t vocabulary = 0;
  Targets targets;
  int64_t first_row = 0;
  double* losses = nullptr;  // per row: -log softmax(logits)[target], 0 without a target
  double* hits = nullptr;    // per row: 1 if no logit is above the target's, else 0; null: not wanted
  bool gradient = false;     // replace the logits by scale * (softmax - onehot), rows without a target by 0
  DType dtype = DType::f32;  // of the gradient, which is dense and starts where the logits start
  float scale = 1;
  float softcap = 0;  // c > 0: a logit l becomes c tanh(l / c)
};

inline size_t row_bytes(const LossRows& rows) { return static_cast<size_t>(rows.vocabulary * dtype_bytes(rows.dtype)); }

template <typename T>
T* gradient_row(const LossRows& rows, int64_t row) {
  return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(rows.logits) + static_cast<size_t>(row) * row_bytes(rows));
}

// Calls body(row) for every row, on the thread team. A narrow gradient of row r overwrites a part of row r / 2 of the
// logits, so that rows [n, 2n) may run concurrently once the rows before n are done.
template <typename Body>
void each_row(const LossRows& rows, Body body) {
  const bool narrow = rows.gradient && rows.dtype != DType::f32;
  for (int64_t begin = 0, end = narrow ? 1 : rows.rows; begin < rows.rows;
       begin = end, end = std::min(rows.rows, 2 * end))
    parallel_for(end - begin, 1, [&](int64_t first, int64_t last, int) {
      for (int64_t row = begin + first; row < begin + last; ++row) body(row);
    });
}

// Sets the results of a row to those of a row without a target: it adds nothing.
inline void start_row(const LossRows& rows, int64_t row) {
  rows.losses[row] = 0;
  if (rows.hits != nullptr) rows.hits[row] = 0;
}

using SoftmaxLoss = void (*)(const LossRows& rows);

// By Highway; a logit that is not finite makes its row's loss and gradient NaN.
SoftmaxLoss simd_softmax_loss();
// Plain loops with sums in double.
void plain_softmax_loss(const LossRows& rows);

// The same for rows whose logits are seen slice by slice, by Highway. Here `vocabulary` is the slice's number of
// entries, `first` its first entry, and `softmax` has an element for each row.
struct SliceSoftmax {
  // Adds the slice's logits to the rows' softmaxes.
  void (*add)(const LossRows& rows, int64_t first, RowSoftmax* softmax);
  // Replaces the logits by their gradient; the softmaxes have all slices.
  void (*write_gradient)(const LossRows& rows, int64_t first, const RowSoftmax* softmax);
};
SliceSoftmax simd_slice_softmax();

}  // namespace headroom
