// Scratch of the output projection and loss on a CUDA device.
#pragma once

#include <algorithm>

#include "base/bytes.h"
#include "ops/linear/cuda_scratch.h"
#include "ops/linear/cuda_sum_scratch.h"
#include "ops/linear_cross_entropy/shape.h"

namespace headroom {

// The longest row of narrow logits that is read once; longer ones are read again for the gradient.
constexpr int64_t kCudaHeldLogits = 32768;

// Parts of the scratch, in this order, each a multiple of 256 bytes.
struct CudaLossScratch {
  int64_t stride = 0;     // elements from one row of logits to the next: rows start at multiples of 256 bytes
  int64_t element = 4;    // bytes of a logit
  int64_t logits = 0;     // chunk * stride elements; a row of dlogits overwrites the start of its row
  int64_t losses = 0;     // one f64 per row; with hits two, the losses first
  int64_t weight = 0;     // w in the type of x, if it is wider
  int64_t workspace = 0;  // of the products, used in turn for the sums of the bias' gradient
  int64_t total() const { return logits + losses + weight + workspace; }
};

// Alignment in bytes, at most 16, of the first row of every chunk of a tensor of `row_bytes` a row.
inline int64_t chunk_alignment(const LossShape& s, int64_t row_bytes) {
  const int64_t step = s.chunk < s.rows ? s.chunk * row_bytes : 0;
  int64_t alignment = 16;
  while (step % alignment != 0) alignment /= 2;
  return alignment;
}

inline CudaLossScratch cuda_loss_scratch(const LossShape& s, const DeviceFacts& facts) {
  CudaLossScratch scratch;
  scratch.element = s.narrow_logits ? 2 : 4;
  scratch.stride = align_up(s.vocabulary, 256 / scratch.element);
  scratch.logits = s.chunk * scratch.stride * scratch.element;
  scratch.losses = cuda_lines(s.rows * (s.hits ? 16 : 8));
  scratch.weight = s.rounds_weight ? cuda_lines(s.vocabulary * s.hidden * 2) : 0;
  scratch.workspace = cuda_lines(facts.gemm_workspace_cap);
  if (s.trains_bias)
    for (int64_t rows : {s.chunk, s.rows % s.chunk})
      scratch.workspace = std::max(scratch.workspace, cuda_lines(cuda::sum_scratch_bytes(rows, s.vocabulary)));
  return scratch;
}

}  // namespace headroom
