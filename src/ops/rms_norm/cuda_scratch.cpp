// Scratch of the CUDA kernels.
#include "ops/rms_norm/cuda_scratch.h"

#include "ops/backend.h"
#include "ops/rms_norm/operands.h"

namespace headroom {

void register_rms_norm_cuda_scratch(ScratchRules& rules) {
  rules.add("rms_norm_grad", [](const OpCall& call, const DeviceFacts&) {
    return call.attrs.integer("train") == 0
               ? 0
               : rms_norm_grad_cuda_scratch(call.inputs[RmsNormGradInputs::x], call.inputs[RmsNormGradInputs::weight]);
  });
}

}  // namespace headroom
