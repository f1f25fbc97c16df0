// Predicted seconds of nodes from a profile: flops / rate or bytes / bandwidth, and launch times.
#pragma once

#include "cost/profile.h"
#include "ir/graph.h"

namespace headroom {

double predict_call(const Op& op, const OpCall& call, const Profile& profile);

// For a copy between the device and a lower tier; `out`: from the device's memory.
double predict_copy(const Op& op, const OpCall& call, Tier below, bool out, const Profile& profile);

}  // namespace headroom
