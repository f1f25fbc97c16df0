// The two products of an adapter with one row, on the best instruction set of the machine. One thread.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

// sum over i of x[i] a[i], in an order that depends on `count` and the machine alone. No two different narrow dtypes.
float lora_down(const void* x, DType x_dtype, const void* a, DType a_dtype, int64_t count);

// The outs of one call of lora_up().
inline constexpr int64_t kLoraOuts = 512;

// to[i] = y[i] + sum over k of t[k] b[k * stride + i], i < count <= kLoraOuts; b of `b_dtype`, y and to of `dtype`,
// which may be the same. Of `rank` rows of b, ascending.
void lora_up(const float* t, int64_t rank, const void* b, DType b_dtype, int64_t stride, const void* y, void* to,
             DType dtype, int64_t count);

}  // namespace headroom
