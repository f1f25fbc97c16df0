// What the kernels of a linear layer book in scratch; the same formulas size the plan and place the parts at run time.
#pragma once

#include "ops/cpu/onednn_scratch.h"
#include "ops/linear/shape.h"

namespace headroom {

struct LinearScratch {
  int64_t workspace = 0;  // of the library's primitive
  int64_t total() const { return workspace; }
};

inline LinearScratch linear_scratch(const OpCall& call, const DeviceFacts& facts) {
  const LinearShape shape = linear_shape(call.inputs[0], call.inputs[1], call.attrs);
  return {onednn_matmul_scratch({shape.rows, shape.outs, shape.ins}, call.inputs[0].dtype, facts)};
}

inline LinearScratch linear_dx_scratch(const OpCall& call, const DeviceFacts& facts) {
  const LinearShape shape = linear_shape(call.inputs[0], call.inputs[1], call.attrs);
  return {onednn_matmul_scratch({shape.rows, shape.ins, shape.outs}, call.inputs[0].dtype, facts)};
}

inline LinearScratch linear_dw_scratch(const OpCall& call, const DeviceFacts& facts) {
  const LinearShape shape = linear_shape(call.inputs[0], call.inputs[2], call.attrs);
  const MatmulSize size =
      shape.out_in ? MatmulSize{shape.outs, shape.ins, shape.rows} : MatmulSize{shape.ins, shape.outs, shape.rows};
  return {onednn_matmul_scratch(size, call.inputs[0].dtype, facts)};
}

// One f32 row of partial sums per thread.
inline int64_t bias_grad_scratch(const OpCall& call, const DeviceFacts& facts) {
  return facts.threads * call.inputs[1].dims[0] * int64_t{4};
}

}  // namespace headroom
