// Products on a CUDA device, for the linear layer and the loss.
#pragma once

#include "ops/cuda/blas.h"
#include "ops/cuda/kernel.h"

namespace headroom {

// Prepares a product whose bias is f32, with at most `workspace` bytes.
using CudaProductMaker = CudaProductOffer (*)(const CudaProductSpec& spec, const CudaContext& context,
                                              int64_t workspace);

// By the library. The bias of a bf16 result is first rounded to bf16, in the workspace.
CudaProductOffer make_library_product(const CudaProductSpec& spec, const CudaContext& context, int64_t workspace);

// By headroom's own tiles on tensor cores; needs no workspace. Supports bf16 operands whose stored rows are multiples
// of eight elements, from compute capability 8.0 on.
CudaProductOffer make_mma_product(const CudaProductSpec& spec, const CudaContext& context, int64_t workspace);

// By headroom's own tiles; needs no workspace. Refuses two transposed operands.
CudaProductOffer make_tiled_product(const CudaProductSpec& spec, const CudaContext& context, int64_t workspace);

}  // namespace headroom
