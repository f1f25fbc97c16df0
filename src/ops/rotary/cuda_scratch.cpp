// Scratch of the CUDA kernels.
#include "ops/rotary/cuda_scratch.h"

#include "ops/backend.h"

namespace headroom {

void register_rotary_cuda_scratch(ScratchRules& rules) {
  rules.add("rope_table", [](const OpCall& call, const DeviceFacts&) {
    return rope_table_cuda_scratch(call.attrs.integer("head_dim"));
  });
}

}  // namespace headroom
