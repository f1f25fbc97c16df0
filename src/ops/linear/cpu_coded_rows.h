// Linear layers with a weight in blocks of codes, which are decoded once for all rows of x and rounded to x's dtype.
#pragma once

#include "ops/cpu/kernel.h"
#include "ops/linear/cpu_rows.h"

namespace headroom {

// Accepts linear for at most eight rows, or with batch_invariant any number, and a weight [outs, ins] whose rows are
// whole blocks; needs AVX2. The bits are those of the dense product with the decoded weight.
KernelOffer make_coded_rows(const KernelSpec& spec, RowsPlan plan, const DeviceFacts& facts);

}  // namespace headroom
