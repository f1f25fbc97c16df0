// What the CPU kernels need as scratch.
#include "ops/backend.h"
#include "ops/linear_cross_entropy/tiled.h"

namespace headroom {

void register_linear_cross_entropy_cpu_scratch(ScratchRules& rules) {
  rules.add("linear_cross_entropy",
            [](const OpCall& call, const DeviceFacts& facts) { return loss_scratch(call, facts, false); });
  rules.add("linear_cross_entropy_grad",
            [](const OpCall& call, const DeviceFacts& facts) { return loss_scratch(call, facts, true); });
}

}  // namespace headroom
