// What the CPU kernels need as scratch.
#include "ops/backend.h"
#include "ops/linear/scratch.h"

namespace headroom {

void register_linear_cpu_scratch(ScratchRules& rules) {
  rules.add("linear", linear_scratch);
  rules.add("linear_dx", [](const OpCall& call, const DeviceFacts& facts) {
    return product_scratch(linear_dx_product(call), facts);
  });
  rules.add("linear_dw", [](const OpCall& call, const DeviceFacts& facts) {
    return product_scratch(linear_dw_product(call, true), facts);
  });
}

}  // namespace headroom
