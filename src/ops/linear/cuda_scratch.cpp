// Scratch of the CUDA kernels.
#include "ops/linear/cuda_scratch.h"

#include "ops/backend.h"
#include "ops/linear/cuda_fp8_scratch.h"
#include "ops/linear/cuda_sum_scratch.h"
#include "ops/linear/scratch.h"

namespace headroom {

void register_linear_cuda_scratch(ScratchRules& rules) {
  rules.add("linear", [](const OpCall& call, const DeviceFacts& facts) {
    return cuda_linear_scratch(call, facts) + fp8_scratch(call, linear_product(call), facts);
  });
  rules.add("linear_dx", [](const OpCall& call, const DeviceFacts& facts) {
    const MatmulSpec spec = linear_dx_product(call);
    return cuda_product_scratch(spec, facts) + fp8_scratch(call, spec, facts);
  });
  rules.add("linear_dw", [](const OpCall& call, const DeviceFacts& facts) {
    const MatmulSpec spec = linear_dw_product(call, true);
    return cuda_product_scratch(spec, facts) + fp8_scratch(call, spec, facts);
  });
  rules.add("bias_grad", [](const OpCall& call, const DeviceFacts&) {
    const int64_t cols = call.inputs[1].dims[0];
    return cols == 0 ? 0 : cuda_lines(cuda::sum_scratch_bytes(element_count(call.inputs[0].dims) / cols, cols));
  });
}

}  // namespace headroom
