// Rows of the RMS norm on the best instruction set of the machine.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

struct RmsNormRows {
  const void* x = nullptr;
  const float* w = nullptr;
  void* y = nullptr;
  int64_t width = 0;
  float eps = 0;
  DType x_dtype = DType::f32;  // f32, bf16 or f16
  DType y_dtype = DType::f32;
  bool unit = false;  // w is stored minus one
};

// Rows [begin, end) of y.
void rms_norm_rows(const RmsNormRows& args, int64_t begin, int64_t end);

struct RmsNormGradRows {
  const void* x = nullptr;
  const float* w = nullptr;
  const void* dy = nullptr;
  const void* addend = nullptr;  // of x's dtype, may be null
  void* dx = nullptr;            // of x's dtype; may be dy or addend
  int64_t width = 0;
  float eps = 0;
  DType x_dtype = DType::f32;
  DType dy_dtype = DType::f32;
  bool unit = false;
};

// Rows [begin, end) of dx; their contribution to dL/dw is written to `dw` if it is not null.
void rms_norm_grad_rows(const RmsNormGradRows& args, int64_t begin, int64_t end, float* dw);

}  // namespace headroom
