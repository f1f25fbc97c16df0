// Linear layers for a few rows (decoding): memory traffic of the weights decides, so they are read once, as they are
// stored.
#pragma once

#include "ops/cpu/kernel.h"

namespace headroom {

// linear, for at most eight rows; needs AVX2.
KernelOffer make_linear_rows(const KernelSpec& spec, const DeviceFacts& facts);
// linear_group alike: the threads share the rows of all weights, and each sum is the one that linear makes.
KernelOffer make_linear_group_rows(const KernelSpec& spec, const DeviceFacts& facts);

}  // namespace headroom
