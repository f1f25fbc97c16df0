// Predicted seconds of nodes from a profile: flops / rate or bytes / bandwidth, and what launching takes.
#pragma once

#include "cost/profile.h"
#include "ir/graph.h"

namespace headroom {

double predict_call(const Op& op, const OpCall& call, const Profile& profile);

// Of a copy between the device and a tier below it, `out` of the device's memory or into it.
double predict_copy(const Op& op, const OpCall& call, Tier below, bool out, const Profile& profile);

}  // namespace headroom
