// Scratch of the CUDA kernels.
#include "ops/moe/cuda_scratch.h"

#include "ops/backend.h"
#include "ops/moe/operands.h"

namespace headroom {

void register_moe_cuda_scratch(ScratchRules& rules) {
  rules.add("moe_route", [](const OpCall& call, const DeviceFacts&) {
    return cuda_route_scratch(routed_shape(call.outputs[RouteOutputs::rows]), call.inputs[0].dims.back());
  });
}

}  // namespace headroom
