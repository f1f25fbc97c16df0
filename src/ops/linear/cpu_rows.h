// Linear layers for a few rows (decoding): reading the weights takes the time, so they are read once, as they are
// stored.
#pragma once

#include <algorithm>

#include "base/threads.h"
#include "ops/cpu/kernel.h"
#include "ops/linear/row_products.h"

namespace headroom {

// The part of a call that is known before its addresses.
struct RowsPlan {
  int64_t count = 0;  // rows of x
  int64_t ins = 0;
  bool out_in = true;
  size_t bias = 0;         // index of the first layer's bias among the inputs; the other layers' follow. 0: none
  size_t residual = 0;     // 0: none
  bool any_count = false;  // more than eight rows are allowed: attribute batch_invariant
};

// The product of output i without its weight.
RowProduct row_product(const KernelCall& call, const RowsPlan& plan, size_t i);

// Calls columns(i, begin, end, thread) for the columns of every output i; the threads share the columns of all outputs,
// `grain` at a time.
template <typename Columns>
void share_columns(const KernelCall& call, int64_t grain, const Columns& columns) {
  int64_t outs = 0;
  for (const TensorView& y : call.outputs) outs += y.dims.back();
  parallel_for(outs, grain, [&](int64_t begin, int64_t end, int thread) {
    for (size_t i = 0; i < call.outputs.size() && end > 0; ++i) {
      const int64_t own = call.outputs[i].dims.back();
      if (begin < std::min(end, own)) columns(i, begin, std::min(end, own), thread);
      begin = std::max<int64_t>(0, begin - own), end -= own;
    }
  });
}

// linear for at most eight rows, or with attribute batch_invariant any number; needs AVX2. A row's sums do not depend
// on the other rows.
KernelOffer make_linear_rows(const KernelSpec& spec, const DeviceFacts& facts);
// The same for linear_group: the threads share the rows of all weights, and each sum has the bits of linear's.
KernelOffer make_linear_group_rows(const KernelSpec& spec, const DeviceFacts& facts);

}  // namespace headroom
