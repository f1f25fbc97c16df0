// Scratch of the CUDA kernels.
#include "ops/reduce/cuda_scratch.h"

#include "ops/backend.h"

namespace headroom {

void register_reduce_cuda_scratch(ScratchRules& rules) {
  rules.add("sum_squares", [](const OpCall& call, const DeviceFacts&) {
    return sum_squares_cuda_scratch(element_count(call.inputs[0].dims));
  });
}

}  // namespace headroom
