// Low-rank products join the wide ones: the second half of technique "lora".
//
// What, for a layer with adapters and for the gradient that it passes on:
//     u = linear(s, B); y' = add(linear(x, W), u)      becomes   y' = linear(x, W, s, B) {low_rank = 1}
//     y' = linear(s, B, linear(x, W, h))               becomes   y' = linear(x, W, s, B, h) {low_rank = 1}
//     dx' = linear_dx(dy, W, linear_dx(ds, A, a))      becomes   dx' = linear_dx(dy, W, ds, A, a) {low_rank = 1}
//   where nothing else reads what is between. One sum takes the place of two, and of their roundings (reassociating).
// Placed here because: after autodiff, which knows the parts; before any schedule, since scratch and time follow from
//   it.
// Saves: a tensor of the product's result and two passes over it. Costs: nothing.
#pragma once

#include "ir/graph.h"

namespace headroom {

// The largest inner dimension of a product that joins another.
inline constexpr int64_t kLowRankMost = 256;

// Acts on every program of the graph. Returns the number of products joined.
int64_t join_low_rank_products(Graph& graph);

}  // namespace headroom
