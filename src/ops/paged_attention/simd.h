// Kernel of attention_paged in fp32 arithmetic, for heads of at most kMaxFastDim elements.
#pragma once

#include "ops/paged_attention/shape.h"

namespace headroom {

// `threads`: what the scratch is for. A row's result is bitwise the same whatever else is in the call, wherever its
// blocks lie and however many threads there are: its keys are cut at fixed positions, and the parts joined in order.
void paged_simd(const PagedCall& call, int64_t threads);

}  // namespace headroom
