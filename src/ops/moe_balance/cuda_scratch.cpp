// Scratch of the CUDA kernels.
#include "ops/moe_balance/cuda_scratch.h"

#include "ops/backend.h"

namespace headroom {

void register_moe_balance_cuda_scratch(ScratchRules& rules) {
  rules.add("moe_balance", [](const OpCall& call, const DeviceFacts&) {
    const std::vector<int64_t>& dims = call.inputs[BalanceInputs::logits].dims;
    return cuda_balance_scratch(dims[0] * dims[1], dims[2]);
  });
}

}  // namespace headroom
