// The weighted sum over the rows of a token and its gradient on the best instruction set of the machine. One thread.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

// z and dz have `chosen` rows of `width` elements per token, whose indices are in `rows`; y and dy have one per token.
struct CombineArrays {
  const void* z = nullptr;  // of dtype
  const int32_t* rows = nullptr;
  const float* weights = nullptr;  // nullptr: 1
  const void* residual = nullptr;  // of y_dtype; nullptr: 0
  void* y = nullptr;               // of y_dtype, f32 or dtype
  const void* dy = nullptr;        // gradient only, of dy_dtype
  void* dz = nullptr;              // of dtype; may be z
  float* dweights = nullptr;
  DType dtype = DType::f32;
  DType y_dtype = DType::f32;
  DType dy_dtype = DType::f32;
  int64_t chosen = 0;
  int64_t width = 0;
};

// Tokens [begin, end): the gradient if dy is given, else the sum.
void combine_tokens(const CombineArrays& arrays, int64_t begin, int64_t end);

}  // namespace headroom
