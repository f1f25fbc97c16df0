// Kernel of attention_paged in fp32 arithmetic, for heads of at most kMaxFastDim elements.
#pragma once

#include "ops/paged_attention/shape.h"

namespace headroom {

// `threads`: the number that the scratch was booked for. The bits of a row's result do not depend on the rest of the
// call, on which blocks it uses or on the number of threads: its keys are cut at fixed positions, and the parts are
// joined in order.
void paged_simd(const PagedCall& call, int64_t threads);

}  // namespace headroom
