// Scratch of a product on a CUDA device.
#pragma once

#include "ops/cpu/matmul_scratch.h"

namespace headroom {

inline int64_t cuda_lines(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// The library wants the bias in the result's type: bytes of its copy, none where it has that type.
inline int64_t narrow_bias_bytes(const MatmulSpec& spec) {
  return spec.bias && spec.result != DType::f32 ? cuda_lines(spec.size.cols * 2) : 0;
}

// Whether B is copied before it is multiplied: f32 beside bf16 is rounded, codes are decoded.
inline bool copies_b(const MatmulSpec& spec) { return spec.rounds_b || !spec.b_storage.dense(); }
inline int64_t cuda_copied_bytes(const MatmulSpec& spec) {
  return copies_b(spec) ? cuda_lines(spec.size.depth * spec.size.cols * dtype_bytes(spec.operand)) : 0;
}

// What the library may use, then the copies of bias and B. Our own kernels need but the last.
inline int64_t cuda_product_scratch(const MatmulSpec& spec, const DeviceFacts& facts) {
  return cuda_lines(facts.gemm_workspace_cap) + narrow_bias_bytes(spec) + cuda_copied_bytes(spec);
}

// Of `linear`. For few rows there are kernels that need nothing.
constexpr int64_t kCudaFewRows = 8;
inline int64_t cuda_linear_scratch(const MatmulSpec& spec, const DeviceFacts& facts) {
  return spec.size.rows <= kCudaFewRows && !copies_b(spec) ? 0 : cuda_product_scratch(spec, facts);
}

}  // namespace headroom
