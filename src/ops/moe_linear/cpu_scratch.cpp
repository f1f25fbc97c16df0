// What the CPU kernels need as scratch.
#include "ops/backend.h"
#include "ops/moe_linear/products.h"

namespace headroom {

void register_moe_linear_cpu_scratch(ScratchRules& rules) {
  rules.add("expert_linear", [](const OpCall& call, const DeviceFacts& facts) {
    return expert_scratch(expert_product(call, rows_shape(call).rows), facts);
  });
  rules.add("expert_linear_dx", [](const OpCall& call, const DeviceFacts& facts) {
    return expert_scratch(expert_dx_product(call, rows_shape(call).rows), facts);
  });
  rules.add("expert_linear_dw", [](const OpCall& call, const DeviceFacts& facts) {
    return expert_scratch(expert_dw_product(call, gradient_shape(call).rows, true), facts);
  });
}

}  // namespace headroom
