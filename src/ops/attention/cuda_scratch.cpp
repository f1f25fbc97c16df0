// Scratch of the CUDA kernels.
#include "ops/attention/cuda_scratch.h"

#include "ops/backend.h"

namespace headroom {

void register_attention_cuda_scratch(ScratchRules& rules) {
  rules.add("attention", cuda_attention_scratch);
  rules.add("attention_grad", cuda_grad_scratch);
  rules.add("attention_cached",
            [](const OpCall& call, const DeviceFacts&) { return cuda_cached_scratch(attention_shape(call)); });
}

}  // namespace headroom
