// One profile of several rounds of a calibration.
#pragma once

#include <vector>

#include "cost/profile.h"

namespace headroom {

// The first round's profile with the median of every rate over the rounds: what disturbs the machine for a moment, a
// program beside this one, slows some points of one round. The rounds have the same entries; there is at least one.
Profile median_of(const std::vector<Profile>& rounds);

}  // namespace headroom
