// Scratch of the CPU kernels.
#include "ops/attention/scratch.h"
#include "ops/backend.h"

namespace headroom {

void register_attention_cpu_scratch(ScratchRules& rules) {
  rules.add("attention", [](const OpCall& call, const DeviceFacts& facts) {
    return forward_scratch(attention_shape(call), call.inputs[AttentionInputs::q].dtype, facts);
  });
  rules.add("attention_grad", [](const OpCall& call, const DeviceFacts& facts) {
    return grad_scratch(attention_shape(call), call.inputs[AttentionInputs::q].dtype, facts);
  });
  rules.add("attention_cached", [](const OpCall& call, const DeviceFacts& facts) {
    return cached_scratch(attention_shape(call), call.inputs[AttentionInputs::q].dtype, facts);
  });
}

}  // namespace headroom
