// Scratch of the CPU kernels.
#include "ops/backend.h"
#include "ops/layer_norm/operands.h"
#include "ops/layer_norm/trained.h"
#include "ops/stream/row_chunks.h"

namespace headroom {

void register_layer_norm_cpu_scratch(ScratchRules& rules) {
  rules.add("layer_norm_grad", [](const OpCall& call, const DeviceFacts&) {
    return trained_count(call.attrs) == 0 ? 0 : partial_sum_bytes(call.inputs[LayerNormGradInputs::x].dims, 2);
  });
}

}  // namespace headroom
