// Fake quantisation with the machine's best instruction set. One thread. Values are f32 or bf16.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

// A weight whose groups are contiguous.
struct GroupedWeight {
  const void* values = nullptr;
  DType dtype = DType::f32;
  int bits = 8;
  int64_t group = 1;
};
// For groups [begin, end): y is the weight rounded to its grid; the gradient is set to 0 where a code was clamped.
void round_groups(const GroupedWeight& weight, void* y, DType y_dtype, int64_t begin, int64_t end);
void mask_groups(const GroupedWeight& weight, float* gradient, int64_t begin, int64_t end);

// Codes of tokens with `features` elements each; a token's grid is its scale and its zero code. The functions below
// process tokens [begin, end).
struct TokenCodes {
  int8_t* codes = nullptr;
  float* grid = nullptr;
  int64_t features = 1;
};
void quantize_rows(const void* x, DType dtype, const TokenCodes& to, int64_t begin, int64_t end);
void dequantize_rows(const TokenCodes& from, void* y, DType dtype, int64_t begin, int64_t end);

// For elements [begin, end): dx is dy, or 0 where the code is the smallest or the largest. dx may be dy.
void mask_codes(const void* dy, DType dy_dtype, const int8_t* codes, void* dx, DType dx_dtype, int64_t begin,
                int64_t end);

}  // namespace headroom
