// A norm whose result joins the residual adds it: families with norms behind attention and MLP (Gemma 2, OLMo 2).
//
// What: z = rms_norm(x, w); h = add(r, z)   becomes   h = rms_norm(x, w, r) {residual = 1}
//   Exact: z is rounded to its type before it is added, as the sum's operand was.
// Legal when: the sum is the next node and alone reads z; on a GPU, whose kernel holds z in registers.
// Placed here because: after autodiff, which needs neither z nor the sum's operands; before any schedule, since scratch
//   and time follow from it.
// Saves: z, which is written and read again, and a launch. Costs: nothing.
#pragma once

#include "ir/graph.h"

namespace headroom {

// Acts on every region of the graph, for a device of these facts; on none for a CPU. Returns the number of sums that it
// took away.
int64_t join_norm_sums(Graph& graph, const DeviceFacts& facts);

}  // namespace headroom
