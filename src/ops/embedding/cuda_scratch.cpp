// Scratch of the CUDA kernels.
#include "ops/embedding/cuda_scratch.h"

#include "ops/backend.h"
#include "ops/embedding/operands.h"

namespace headroom {

void register_embedding_cuda_scratch(ScratchRules& rules) {
  rules.add("embedding_grad", [](const OpCall& call, const DeviceFacts&) {
    return embedding_grad_cuda_scratch(element_count(call.inputs[EmbeddingGradInputs::ids].dims));
  });
}

}  // namespace headroom
