// What the CPU kernels need as scratch.
#include "ops/backend.h"
#include "ops/linear/scratch.h"
#include "ops/linear_group/members.h"

namespace headroom {

void register_linear_group_cpu_scratch(ScratchRules& rules) {
  rules.add("linear_group", [](const OpCall& call, const DeviceFacts& facts) {
    return most_member_scratch(call, facts, linear_scratch);
  });
}

}  // namespace headroom
