// What the CPU kernels need as scratch.
#include "ops/backend.h"
#include "ops/dora/scratch.h"
#include "ops/stream/row_chunks.h"

namespace headroom {

void register_dora_cpu_scratch(ScratchRules& rules) {
  rules.add("row_lengths",
            [](const OpCall& call, const DeviceFacts& facts) { return row_lengths_scratch(call, facts.threads); });
  rules.add("magnitude_grad", [](const OpCall& call, const DeviceFacts&) {
    return partial_sum_bytes(magnitude_rows(call.inputs[MagnitudeGradInputs::z]), 1);
  });
}

}  // namespace headroom
