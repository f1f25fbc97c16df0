// Scratch of the CUDA kernels.
#include "ops/dora/cuda_scratch.h"

#include "ops/backend.h"

namespace headroom {

void register_dora_cuda_scratch(ScratchRules& rules) {
  rules.add("magnitude_grad", [](const OpCall& call, const DeviceFacts&) {
    return magnitude_grad_cuda_scratch(call.inputs[MagnitudeGradInputs::z]);
  });
}

}  // namespace headroom
