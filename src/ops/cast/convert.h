// Conversion between f32 and the narrow types, bf16 and f16, with the machine's best instruction set.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace headroom {

// to[i] = from[i] for `count` elements, rounded to nearest even. One dtype is f32, or both are equal: then the elements
// are copied. One thread.
void convert_floats(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count);
// The same on the thread team.
void convert_in_parallel(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count);

}  // namespace headroom
