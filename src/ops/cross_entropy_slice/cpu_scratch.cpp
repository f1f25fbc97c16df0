// What the CPU kernels need as scratch.
#include "ops/backend.h"
#include "ops/cross_entropy_slice/shape.h"

namespace headroom {

void register_cross_entropy_slice_cpu_scratch(ScratchRules& rules) {
  rules.add("cross_entropy_slice", [](const OpCall& call, const DeviceFacts& facts) {
    return slice_scratch_bytes(loss_shape(call), call.inputs[SliceInputs::x].dtype, facts, false, false);
  });
  rules.add("cross_entropy_slice_grad", [](const OpCall& call, const DeviceFacts& facts) {
    return slice_scratch_bytes(loss_shape(call), call.inputs[SliceInputs::x].dtype, facts, true,
                               call.attrs.integer("train_weight") != 0);
  });
}

}  // namespace headroom
