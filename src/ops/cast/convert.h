// Conversion between f32 and the narrow types, bf16 and f16, on the best instruction set of the machine.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

// to[i] = from[i] for `count` elements, rounded to nearest even; equal dtypes copy. One of them is f32,
// or both are equal. One thread.
void convert_floats(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count);
// The same by the thread team.
void convert_in_parallel(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count);

}  // namespace headroom
