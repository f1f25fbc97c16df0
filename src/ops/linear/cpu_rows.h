// The linear layer for a few rows (decoding): memory traffic of the weight decides, so w is read once, as it is stored.
#pragma once

#include "ops/cpu/kernel.h"

namespace headroom {

// Accepts at most eight rows; needs AVX2.
KernelOffer make_linear_rows(const KernelSpec& spec, const DeviceFacts& facts);

}  // namespace headroom
