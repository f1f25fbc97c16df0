// Row lengths and magnitudes with the machine's best instruction set. One thread. Values are f32, bf16 or f16.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

// `count` rows of the weight, beginning at row `weight`, with the rows of b that belong to them.
struct LengthRows {
  const void* weight = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  float* lengths = nullptr;
  int64_t count = 0, ins = 0, rank = 0;
  float factor = 1;
  DType weight_dtype = DType::f32, dtype = DType::f32;  // the weight's, and that of a and b
};
// The bits of a row's length do not depend on the other rows.
void lengths_of_rows(const LengthRows& rows);

// y = z * magnitude / lengths [+ bias] [+ residual]
struct MagnitudeRows {
  const void* z = nullptr;
  const float* magnitude = nullptr;
  const float* lengths = nullptr;
  const float* bias = nullptr;     // or none
  const void* residual = nullptr;  // or none; of y's type
  void* y = nullptr;               // may be z or the residual
  int64_t width = 0;
  DType z_dtype = DType::f32, y_dtype = DType::f32;
};
// Rows [begin, end).
void scale_rows(const MagnitudeRows& args, int64_t begin, int64_t end);

struct MagnitudeGradRows {
  const void* dy = nullptr;
  const void* z = nullptr;
  const float* magnitude = nullptr;
  const float* lengths = nullptr;
  void* dz = nullptr;  // of z's type; may be dy
  int64_t width = 0;
  DType dy_dtype = DType::f32, z_dtype = DType::f32;
};
// dz of rows [begin, end); `sums` [width] becomes the sum over these rows of dy * z / lengths.
void scale_rows_grad(const MagnitudeGradRows& args, int64_t begin, int64_t end, float* sums);

}  // namespace headroom
