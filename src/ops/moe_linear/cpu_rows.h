// The experts' linear layer for a few tokens (decoding): memory traffic of the weights decides, so the matrices of the
// chosen experts are read once, as they are stored.
#pragma once

#include "ops/cpu/kernel.h"

namespace headroom {

// Accepts at most eight tokens; needs AVX2.
KernelOffer make_expert_rows(const KernelSpec& spec, const DeviceFacts& facts);

}  // namespace headroom
