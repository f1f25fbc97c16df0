// What the CPU kernels need as scratch.
#include "ops/backend.h"
#include "ops/linear/shape.h"
#include "ops/moe_linear/arranged_rows.h"

namespace headroom {
namespace {

// A batch-invariant product multiplies rows with the weight as it is stored, and packs nothing.
int64_t arranged_scratch(const OpCall& call, const DeviceFacts& facts) {
  const ExpertShape shape = rows_shape(call);
  return arranged_bytes(row_form(expert_types(call), shape.ins, facts.capabilities), shape);
}

}  // namespace

void register_moe_linear_cpu_scratch(ScratchRules& rules) {
  rules.add("expert_linear", [](const OpCall& call, const DeviceFacts& facts) {
    if (is_batch_invariant(call.attrs)) return arranged_scratch(call, facts);
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
