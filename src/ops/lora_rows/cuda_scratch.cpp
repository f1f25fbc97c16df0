// Scratch of the CUDA kernels.
#include "ops/backend.h"
#include "ops/lora_rows/shape.h"

namespace headroom {

void register_lora_rows_cuda_scratch(ScratchRules& rules) {
  rules.add("lora_rows",
            [](const OpCall& call, const DeviceFacts&) { return lora_rows_scratch(lora_rows_shape(call)); });
}

}  // namespace headroom
