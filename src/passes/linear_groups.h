// Linear layers of one input become one op in programs without a gradient.
//
// What: q = linear(x, Wq); k = linear(x, Wk); v = linear(x, Wv)   becomes   q, k, v = linear_group(x, Wq, Wk, Wv)
//   for layers of equal attributes, block and stage that add nothing, at the place of the last of them; nothing between
//   reads the earlier ones. Exact: every sum is the one that linear makes.
// Placed here because: last, after adapters and the precision, which change linear layers; linear_group has no vjp.
// Saves: time where few rows meet the weights: one product starts, shares its weights among the threads and ends in the
//   place of several. Costs: nothing.
#pragma once

#include "ir/graph.h"

namespace headroom {

// Acts on the nodes of a region, not on the loops inside. Returns the number of groups.
int64_t group_linears(Graph& graph, RegionId region);

}  // namespace headroom
