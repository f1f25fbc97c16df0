// The product with a constant on the best instruction set of the machine. One thread.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

// y[i] = factor x[i] for i in [begin, end), both of `dtype` (f32 or bf16); y may be x.
void scale_range(const void* x, void* y, DType dtype, float factor, int64_t begin, int64_t end);

}  // namespace headroom
