// Softmax, loss and gradient over rows of logits.
#pragma once

#include "ir/dtype.h"
#include "ops/linear_cross_entropy/shape.h"

namespace headroom {

// Rows of logits of one chunk; `first_row` is the chunk's place among all rows.
struct LossRows {
  float* logits = nullptr;
  int64_t stride = 0;
  int64_t rows = 0;
  int64_t vocabulary = 0;
  Targets targets;
  int64_t first_row = 0;
  double* losses = nullptr;  // per row: -log softmax(logits)[target], 0 without a target
  bool gradient = false;     // replace each row of logits by scale * (softmax - onehot), 0 without a target
  DType dtype = DType::f32;  // of the gradient; it starts where its row of logits starts
  float scale = 1;
};

using SoftmaxLoss = void (*)(const LossRows& rows);

// Highway; a logit that is not finite makes its row's loss and gradient NaN.
SoftmaxLoss simd_softmax_loss();
// Plain loops with sums in double.
void plain_softmax_loss(const LossRows& rows);

}  // namespace headroom
