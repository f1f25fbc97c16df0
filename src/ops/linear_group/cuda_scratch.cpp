// Scratch of the CUDA kernels.
#include "ops/linear/cuda_scratch.h"
#include "ops/backend.h"
#include "ops/linear/scratch.h"
#include "ops/linear_group/members.h"

namespace headroom {

void register_linear_group_cuda_scratch(ScratchRules& rules) {
  rules.add("linear_group", [](const OpCall& call, const DeviceFacts& facts) {
    return most_member_scratch(call, facts, cuda_linear_scratch);
  });
}

}  // namespace headroom
