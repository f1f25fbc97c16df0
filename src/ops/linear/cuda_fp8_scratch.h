// Scratch of an fp8 product on a CUDA device: the scales of both operands, partial maxima, and the codes.
#pragma once

#include "ops/cuda/capabilities.h"
#include "ops/linear/cuda_scratch.h"
#include "ops/linear/fp8.h"

namespace headroom {

// Blocks that search for the largest element.
constexpr int64_t kFp8Parts = 512;

// Offsets in bytes.
struct Fp8Layout {
  int64_t a_scale = 0, b_scale = 128;
  int64_t a_parts = 256, b_parts = a_parts + kFp8Parts * 4;
  int64_t a_codes = b_parts + kFp8Parts * 4;
  int64_t b_codes = 0;
  int64_t total = 0;

  explicit Fp8Layout(const MatmulSize& size) {
    b_codes = a_codes + cuda_lines(size.rows * size.depth);
    total = b_codes + cuda_lines(size.cols * size.depth);
  }
};

// For a call's product; 0 if it is not an fp8 product.
inline int64_t fp8_scratch(const OpCall& call, const MatmulSpec& spec, const DeviceFacts& facts) {
  if (call.attrs.text("multiply") != kMultiplyFp8 || spec.operand != DType::bf16) return 0;
  const bool fits = has_fp8_tensor_cores(facts) && fits_fp8(spec.size.rows, spec.size.cols, spec.size.depth);
  return fits ? Fp8Layout(spec.size).total : 0;
}

}  // namespace headroom
