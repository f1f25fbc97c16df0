// Scratch of the CUDA kernels.
#include "ops/backend.h"
#include "ops/moe_linear/products.h"

namespace headroom {

void register_moe_linear_cuda_scratch(ScratchRules& rules) {
  // A copy of all experts' f32 weights in the type of the rows, if they are rounded.
  for (const char* op : {"expert_linear", "expert_linear_dx"})
    rules.add(op, [](const OpCall& call, const DeviceFacts&) {
      return call.inputs[ExpertInputs::weight].dtype == call.inputs[ExpertInputs::rows].dtype
                 ? 0
                 : element_count(call.inputs[ExpertInputs::weight].dims) * 2;
    });
}

}  // namespace headroom
