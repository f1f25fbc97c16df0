// Scratch of the CUDA kernels.
#include "ops/paged_attention/cuda_scratch.h"

#include "ops/backend.h"

namespace headroom {

void register_paged_attention_cuda_scratch(ScratchRules& rules) {
  rules.add("attention_paged",
            [](const OpCall& call, const DeviceFacts&) { return cuda_paged_scratch(paged_shape(call)); });
}

}  // namespace headroom
