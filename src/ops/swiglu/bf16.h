// silu(gate) * up and its gradient over bf16 with AVX512_BF16 conversions. One thread.
#pragma once

#include "ops/swiglu/simd.h"

namespace headroom {

// As swiglu_range, for bf16 arrays and silu, on machines with the instructions.
void swiglu_bf16_range(const SwigluArrays& arrays, int64_t begin, int64_t end);

}  // namespace headroom
