// Scratch of the CUDA kernels.
#include "ops/linear/cuda_scratch.h"
#include "ops/backend.h"
#include "ops/muon/products.h"

namespace headroom {

void register_muon_cuda_scratch(ScratchRules& rules) {
  rules.add("muon", [](const OpCall& call, const DeviceFacts& facts) {
    const MuonShape shape(call.inputs[MuonInputs::weight].dims);
    const MuonProducts of(shape);
    int64_t most = 0;
    for (const MatmulSpec* spec : {&of.gram, &of.square, &of.move})
      most = std::max(most, cuda_product_scratch(*spec, facts));
    return MuonScratch(shape).bytes + most;
  });
}

}  // namespace headroom
