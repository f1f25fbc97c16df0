// Rows of the layer norm with the machine's best instruction set. One thread.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

struct LayerNormRows {
  const void* x = nullptr;
  const float* w = nullptr;
  const float* b = nullptr;
  void* y = nullptr;
  int64_t width = 0;
  float eps = 0;
  DType x_dtype = DType::f32;  // f32, bf16 or f16
  DType y_dtype = DType::f32;
};

// Computes rows [begin, end) of y.
void layer_norm_rows(const LayerNormRows& args, int64_t begin, int64_t end);

struct LayerNormGradRows {
  const void* x = nullptr;
  const float* w = nullptr;
  const void* dy = nullptr;
  const void* addend = nullptr;  // of x's dtype; may be null
  void* dx = nullptr;            // of x's dtype; may be dy or addend
  int64_t width = 0;
  float eps = 0;
  DType x_dtype = DType::f32;
  DType dy_dtype = DType::f32;
};

// Computes rows [begin, end) of dx and overwrites `dw` and `db`, both null or neither, with the rows' sums for dL/dw
// and dL/db.
void layer_norm_grad_rows(const LayerNormGradRows& args, int64_t begin, int64_t end, float* dw, float* db);

}  // namespace headroom
