// Products whose rows do not depend on how many rows there are, for serving.
//
// What: y = linear(x, W)   becomes   y = linear(x, W) {batch_invariant = 1}
//   A row of the result is bitwise the same however many rows x has, so a sequence gets the same tokens alone and among
//   others. The same holds for the products of experts.
// Placed here because: after adapters, quantisation and precision, which add products; before groups of layers, which
//   inherit the attribute of their members.
// Costs: kernels that sum in one order for every size, instead of the fastest kernel for each size.
#pragma once

#include "ir/graph.h"

namespace headroom {

// Acts on the nodes of a region, not inside its loops. Returns the number of products.
int64_t make_batch_invariant(Graph& graph, RegionId region);

}  // namespace headroom
