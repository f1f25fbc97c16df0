// What the CPU kernels need as scratch.
#include "ops/backend.h"
#include "ops/rms_norm/operands.h"
#include "ops/rms_norm/rows.h"
#include "ops/stream/row_chunks.h"

namespace headroom {

void register_rms_norm_cpu_scratch(ScratchRules& rules) {
  rules.add("rms_norm_grad", [](const OpCall& call, const DeviceFacts&) {
    return call.attrs.integer("train") == 0
               ? 0
               : partial_sum_bytes(norm_rows(call.inputs[RmsNormGradInputs::x], call.inputs[RmsNormGradInputs::weight]),
                                   1);
  });
}

}  // namespace headroom
