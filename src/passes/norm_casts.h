// The gradient of a norm also writes the bf16 copy that products read.
//
// What: dx = rms_norm_grad(...); n = cast(dx) {dtype = bf16}   becomes   dx, n = rms_norm_grad(...) {narrow = 1}
//   Exact: the copy is the rounded dx, as the cast's.
// Legal when: the cast reads the norm's first output and comes after it in the same region; on a GPU, whose kernel
//   holds dx in registers. A second cast of the same value reads the same copy.
// Placed here because: after autodiff, which makes both.
// Saves: time: a read of dx and a launch. Costs: the copy is alive as soon as dx is.
#pragma once

#include "ir/graph.h"

namespace headroom {

// Acts on every region of the graph, for a device with these facts; does nothing for a CPU. Returns the number of casts
// removed.
int64_t join_norm_casts(Graph& graph, const DeviceFacts& facts);

}  // namespace headroom
