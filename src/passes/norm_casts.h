// A norm's gradient writes the bf16 copy that the products before it read.
//
// What: dx = rms_norm_grad(...); n = cast(dx) {dtype = bf16}   becomes   dx, n = rms_norm_grad(...) {narrow = 1}
//   Exact: the copy is the rounded dx, as the cast's.
// Legal when: the cast reads the norm's first output and stands behind it in the same region; on a GPU, whose kernel
//   holds dx in registers. A second cast of the same value reads the copy too.
// Placed here because: after autodiff, which makes both.
// Saves: time: dx is not read again, and a launch. Costs: the copy is there as soon as dx is.
#pragma once

#include "ir/graph.h"

namespace headroom {

// Acts on every region of the graph, for a device of these facts; on none for a CPU. Returns the number of casts that
// it took away.
int64_t join_norm_casts(Graph& graph, const DeviceFacts& facts);

}  // namespace headroom
