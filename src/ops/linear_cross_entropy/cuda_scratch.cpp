// Scratch of the CUDA kernels.
#include "ops/linear_cross_entropy/cuda_scratch.h"

#include "ops/backend.h"

namespace headroom {

void register_linear_cross_entropy_cuda_scratch(ScratchRules& rules) {
  for (const char* op : {"linear_cross_entropy", "linear_cross_entropy_grad"})
    rules.add(op, [](const OpCall& call, const DeviceFacts& facts) {
      return cuda_loss_scratch(loss_shape(call), facts).total();
    });
}

}  // namespace headroom
