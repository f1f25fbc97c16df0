// Attention and its gradient by a library (ops/cuda/dnn.h), if it is installed and supports the call.
#pragma once

#include "ops/cuda/kernel.h"

namespace headroom {

CudaOffer make_dnn_attention(const KernelSpec& spec, const CudaContext& context);
CudaOffer make_dnn_attention_grad(const KernelSpec& spec, const CudaContext& context);

}  // namespace headroom
