// Products whose rows do not depend on each other, for serving.
//
// What: y = linear(x, W)   becomes   y = linear(x, W) {batch_invariant = 1}
//   A row of the result is bitwise the same however many rows x has, so that a sequence gets the same tokens alone and
//   among others. Likewise the products of experts.
// Placed here because: after adapters, quantisation and precision, which make products of their own; before groups of
//   layers, which carry the attribute of their members.
// Costs: kernels that sum in one order for every size, in place of the fastest of each size.
#pragma once

#include "ir/graph.h"

namespace headroom {

// Acts on the nodes of a region, not on the loops inside. Returns the number of products.
int64_t make_batch_invariant(Graph& graph, RegionId region);

}  // namespace headroom
