// A norm whose result is added to the residual stream adds it itself: for families with norms after attention and MLP
// (Gemma 2, OLMo 2).
//
// What: z = rms_norm(x, w); h = add(r, z)   becomes   h = rms_norm(x, w, r) {residual = 1}
//   Exact: z is rounded to its type before it is added, as the sum's operand was.
// Legal when: the sum is the next node and the only reader of z; on a GPU, whose kernel holds z in registers.
// Placed here because: after autodiff, which needs neither z nor the sum's operands; before the passes on sizes and on
//   the order of computation, since scratch and time depend on it.
// Saves: writing and reading z, and a launch. Costs: nothing.
#pragma once

#include "ir/graph.h"

namespace headroom {

// Acts on every region of the graph, for a device with these facts; does nothing for a CPU. Returns the number of sums
// removed.
int64_t join_norm_sums(Graph& graph, const DeviceFacts& facts);

}  // namespace headroom
