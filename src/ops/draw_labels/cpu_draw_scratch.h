// Scratch of drawn labels on a CPU.
#pragma once

#include "base/bytes.h"
#include "ops/cpu/matmul_scratch.h"
#include "ops/draw_labels/shape.h"

namespace headroom {

// Parts of the scratch, in this order, each a multiple of 64 bytes.
struct CpuDrawScratch {
  int64_t logits = 0;     // chunk * vocabulary f32
  int64_t workspace = 0;  // of the larger product
  int64_t total() const { return logits + workspace; }
};

inline CpuDrawScratch cpu_draw_scratch(const LossShape& s, DType dtype, const DeviceFacts& facts) {
  CpuDrawScratch scratch{align_up(s.chunk * s.vocabulary * 4, 64), 0};
  for (const int64_t rows : {s.chunk, s.rows % s.chunk})
    if (rows > 0)
      scratch.workspace = std::max(scratch.workspace, matmul_scratch(logits_product(s, dtype, rows), facts));
  return scratch;
}

}  // namespace headroom
