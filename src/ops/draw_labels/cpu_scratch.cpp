// What the CPU kernels need as scratch.
#include "ops/backend.h"
#include "ops/draw_labels/cpu_draw_scratch.h"

namespace headroom {

void register_draw_labels_cpu_scratch(ScratchRules& rules) {
  rules.add("draw_labels", [](const OpCall& call, const DeviceFacts& facts) {
    return cpu_draw_scratch(loss_shape(call), call.inputs[DrawInputs::x].dtype, facts).total();
  });
}

}  // namespace headroom
