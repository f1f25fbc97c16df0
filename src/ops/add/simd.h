// Elementwise sums with the machine's best instruction set. Pointers are to f32, bf16 or f16 elements; one thread.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

// y[i] = a[i] + b[i], all of `dtype`; y may be a or b.
void add_floats(const void* a, const void* b, void* y, DType dtype, int64_t count);

// acc[i] += x[i]
void accumulate_floats(const void* x, DType dtype, float* acc, int64_t count);

// y[i] = x[i] + addend[i], x and y of `dtype`; y may be x.
void add_f32(const void* x, const float* addend, void* y, DType dtype, int64_t count);

}  // namespace headroom
