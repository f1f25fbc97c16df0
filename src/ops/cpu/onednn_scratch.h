// Plan-time booking of oneDNN's matmul workspace: a formula, so that planning needs no library.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/op.h"

namespace headroom {

// One product C[rows, cols] = A[rows, depth] B[depth, cols].
struct MatmulSize {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t depth = 0;
};

// Bytes booked for the workspace of one product; every kernel that creates a primitive checks that oneDNN asks for no
// more. `facts.gemm_workspace_cap`, when set, replaces the formula.
inline int64_t onednn_matmul_scratch(const MatmulSize& size, DType dtype, const DeviceFacts& facts) {
  if (facts.gemm_workspace_cap > 0) return facts.gemm_workspace_cap;
  return int64_t{4} << 20;
}

}  // namespace headroom
