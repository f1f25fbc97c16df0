// Scratch of the CUDA kernels.
#include "ops/layer_norm/cuda_scratch.h"

#include "ops/backend.h"
#include "ops/layer_norm/operands.h"
#include "ops/layer_norm/trained.h"

namespace headroom {

void register_layer_norm_cuda_scratch(ScratchRules& rules) {
  rules.add("layer_norm_grad", [](const OpCall& call, const DeviceFacts&) {
    return trained_count(call.attrs) == 0 ? 0 : layer_norm_grad_cuda_scratch(call.inputs[LayerNormGradInputs::x]);
  });
}

}  // namespace headroom
