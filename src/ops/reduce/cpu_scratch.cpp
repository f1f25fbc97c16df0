// What the CPU kernels need as scratch.
#include "ops/backend.h"
#include "ops/reduce/chunks.h"

namespace headroom {

void register_reduce_cpu_scratch(ScratchRules& rules) {
  rules.add("sum_squares", [](const OpCall& call, const DeviceFacts&) {
    return sum_squares_scratch(element_count(call.inputs[0].dims));
  });
}

}  // namespace headroom
