// Products of bf16 operands that the library computes in fp8.
#pragma once

#include "ops/cuda/fp8.h"
#include "ops/linear/cuda_product.h"

namespace headroom {

// Rounds A and B to codes of these formats, in the workspace, then multiplies them. Refuses if the device or the
// library has no such product; other kernels then multiply in bf16.
CudaProductOffer make_fp8_product(const CudaProductSpec& spec, Fp8Format a, Fp8Format b, const CudaContext& context,
                                  int64_t workspace);

// The same as a CudaProductMaker.
template <Fp8Format a, Fp8Format b>
CudaProductOffer make_fp8_product_of(const CudaProductSpec& spec, const CudaContext& context, int64_t workspace) {
  return make_fp8_product(spec, a, b, context, workspace);
}

}  // namespace headroom
