// Requirements of tensor-core kernels on the device and the operands.
#pragma once

#include <initializer_list>

#include "ops/cuda/capabilities.h"
#include "ops/cuda/kernel.h"

namespace headroom {

// Why a device cannot run them with `shared_bytes` of dynamic shared memory per block; empty when it can.
inline std::string mma_device_refusal(const CudaContext& context, int64_t shared_bytes) {
  if (!has_bf16_tensor_cores(context.facts))
    return fmt::format("needs compute capability 8.0, not {}",
                       compute_capability_name(compute_capability(context.facts)));
  if (shared_bytes > context.shared_bytes)
    return fmt::format("needs {} bytes of shared memory, not {}", shared_bytes, context.shared_bytes);
  return {};
}

// Why they cannot compute products (ops/cuda/mma_product.cuh) of operands whose stored rows have these lengths and
// strides; empty when they can.
inline std::string mma_product_refusal(const CudaContext& context, int64_t shared_bytes, DType operand,
                                       std::initializer_list<int64_t> lengths) {
  if (operand != DType::bf16) return "operands are not bf16";
  for (int64_t length : lengths)
    if (length % 8 != 0) return "rows are not multiples of 16 bytes";
  return mma_device_refusal(context, shared_bytes);
}

}  // namespace headroom
