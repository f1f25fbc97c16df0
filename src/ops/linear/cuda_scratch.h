// Scratch of a product on a CUDA device.
#pragma once

#include "ops/cpu/matmul_scratch.h"
#include "ops/linear/scratch.h"
#include "ops/linear/shape.h"

namespace headroom {

inline int64_t cuda_lines(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// The library needs the bias in the result's type: bytes of the copy, 0 if it has that type.
inline int64_t narrow_bias_bytes(const MatmulSpec& spec) {
  return spec.bias && spec.result != DType::f32 ? cuda_lines(spec.size.cols * 2) : 0;
}

// Whether B is copied before the product: f32 weights are rounded for narrow operands, codes are decoded.
inline bool copies_b(const MatmulSpec& spec) { return spec.rounds_b || !spec.b_storage.dense(); }
inline int64_t cuda_copied_bytes(const MatmulSpec& spec) {
  return copies_b(spec) ? cuda_lines(spec.size.depth * spec.size.cols * dtype_bytes(spec.operand)) : 0;
}

// The library's workspace, then the copies of bias and B. headroom's own kernels need only the last.
inline int64_t cuda_product_scratch(const MatmulSpec& spec, const DeviceFacts& facts) {
  return cuda_lines(facts.gemm_workspace_cap) + narrow_bias_bytes(spec) + cuda_copied_bytes(spec);
}

// For `linear`. The kernels for few rows, and batch-invariant ones, need only the copy of B.
constexpr int64_t kCudaFewRows = 8;
inline int64_t cuda_linear_scratch(const OpCall& call, const DeviceFacts& facts) {
  const MatmulSpec spec = linear_product(call);
  const bool few = spec.size.rows <= kCudaFewRows && spec.b_storage.dense();
  return few || is_batch_invariant(call.attrs) ? cuda_copied_bytes(spec) : cuda_product_scratch(spec, facts);
}

}  // namespace headroom
