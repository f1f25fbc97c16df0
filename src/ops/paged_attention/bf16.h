// Kernels of attention_paged with bf16 dot products or on AMX tiles, for queries, keys and values in bf16 and heads of
// at most kMaxFastDim elements.
#pragma once

#include "ops/paged_attention/shape.h"

namespace headroom {

// Whether the processor has AVX512_BF16 and the build uses it. Thread-safe.
bool paged_bf16_usable();

// As paged_simd(). Scores, sums and results are in fp32; the softmax's numerators are rounded to bf16, the left operand
// of the second product. A row's bits depend on its queries, keys and values alone.
void paged_bf16(const PagedCall& call, int64_t threads);

// The same on AMX tiles.
bool paged_amx_usable();
void paged_amx(const PagedCall& call, int64_t threads);

}  // namespace headroom
