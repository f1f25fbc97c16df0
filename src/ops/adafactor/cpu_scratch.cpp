// Scratch of the CPU kernels.
#include "ops/adafactor/plan.h"
#include "ops/adafactor/shape.h"
#include "ops/backend.h"

namespace headroom {

void register_adafactor_cpu_scratch(ScratchRules& rules) {
  rules.add("adafactor", [](const OpCall& call, const DeviceFacts&) {
    return AdafactorShape(call.inputs[AdafactorInputs::weight].dims).scratch_bytes();
  });
}

}  // namespace headroom
