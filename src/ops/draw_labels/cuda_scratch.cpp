// Scratch of the CUDA kernels.
#include "ops/linear_cross_entropy/cuda_scratch.h"
#include "ops/backend.h"
#include "ops/draw_labels/shape.h"

namespace headroom {

void register_draw_labels_cuda_scratch(ScratchRules& rules) {
  rules.add("draw_labels", [](const OpCall& call, const DeviceFacts& facts) {
    return cuda_loss_scratch(loss_shape(call), facts).total();
  });
}

}  // namespace headroom
