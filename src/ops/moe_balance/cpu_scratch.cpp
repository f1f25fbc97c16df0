// What the CPU kernels need as scratch.
#include "ops/backend.h"
#include "ops/moe_balance/sizes.h"

namespace headroom {

void register_moe_balance_cpu_scratch(ScratchRules& rules) {
  rules.add("moe_balance", [](const OpCall& call, const DeviceFacts&) {
    return balance_scratch_bytes(call.inputs[BalanceInputs::logits].dims[2]);
  });
}

}  // namespace headroom
