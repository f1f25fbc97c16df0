// The two products of an adapter with one row, on the best instruction set of the machine. One thread.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

// sum over i of x[i] a[i], in an order that depends only on `count` and the machine. The dtypes are not two different
// narrow ones.
float lora_down(const void* x, DType x_dtype, const void* a, DType a_dtype, int64_t count);

// The most outs of one call of lora_up().
inline constexpr int64_t kLoraOuts = 512;

// to[i] = y[i] + sum over k of t[k] b[k * stride + i], i < count <= kLoraOuts; k ascends over the `rank` rows of b. b
// is of `b_dtype`, y and to are of `dtype`; y may be to.
void lora_up(const float* t, int64_t rank, const void* b, DType b_dtype, int64_t stride, const void* y, void* to,
             DType dtype, int64_t count);

}  // namespace headroom
