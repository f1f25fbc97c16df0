// Linear layers for a few rows (decoding): memory traffic of the weights decides, so they are read once, as they are
// stored.
#pragma once

#include "ops/cpu/kernel.h"

namespace headroom {

// What is known of a call before its addresses.
struct RowsPlan {
  int64_t count = 0;  // rows of x
  int64_t ins = 0;
  bool out_in = true;
  size_t bias = 0;         // the input that is the first layer's bias; those of the others follow. 0: there is none
  size_t residual = 0;     // 0: there is none
  bool any_count = false;  // takes more than eight rows: attribute batch_invariant
};

// linear, for at most eight rows, or with attribute batch_invariant any number of them; needs AVX2. The sums of a row
// are the same with any others.
KernelOffer make_linear_rows(const KernelSpec& spec, const DeviceFacts& facts);
// linear_group alike: the threads share the rows of all weights, and each sum is the one that linear makes.
KernelOffer make_linear_group_rows(const KernelSpec& spec, const DeviceFacts& facts);

}  // namespace headroom
