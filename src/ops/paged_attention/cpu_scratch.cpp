// What the CPU kernels need as scratch.
#include "ops/backend.h"
#include "ops/paged_attention/scratch.h"

namespace headroom {

void register_paged_attention_cpu_scratch(ScratchRules& rules) {
  rules.add("attention_paged", [](const OpCall& call, const DeviceFacts& facts) { return paged_scratch(call, facts); });
}

}  // namespace headroom
