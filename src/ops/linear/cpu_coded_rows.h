// Linear layers for a few rows (decoding) with a weight in blocks of codes, which are read once and decoded in
// registers.
#pragma once

#include "ops/cpu/kernel.h"
#include "ops/linear/cpu_rows.h"

namespace headroom {

// linear, for at most eight rows and a weight [outs, ins] whose rows are whole blocks; needs AVX2.
KernelOffer make_coded_rows(const KernelSpec& spec, const RowsPlan& plan, const DeviceFacts& facts);

}  // namespace headroom
