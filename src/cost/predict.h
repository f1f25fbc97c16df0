// Predicted seconds of nodes and programs from a profile: max(flops / rate, bytes / bandwidth) + launch.
#pragma once

#include "cost/profile.h"
#include "ir/graph.h"

namespace headroom {

double predict_call(const Op& op, const OpCall& call, const Profile& profile);

// Seconds of one run of a program when every loop makes `trips` trips; nodes may not nest loops deeper than one. Copies
// between tiers run beside the kernels, in and out on a stream each, as the runtime orders them: a wait takes the time
// that the copy still needs.
double predict_program(const Graph& graph, RegionId program, const Bindings& bindings, int64_t trips,
                       const Profile& profile);

}  // namespace headroom
