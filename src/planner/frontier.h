// The points that no other beats in the bytes of each tier and in time.
#pragma once

#include <vector>

#include "planner/search.h"

namespace headroom {

// The points that no other equals or beats in all tiers and in time, ascending in the device's bytes, then the host's.
std::vector<FrontierPoint> unbeaten(std::vector<FrontierPoint> points);

// Of these, the points that no other within the budgets of the lower tiers (0: any) beats in the device's bytes and
// time: ascending in bytes, strictly descending in time.
std::vector<FrontierPoint> unbeaten_within(const std::vector<FrontierPoint>& points, const TierBytes& budgets);

}  // namespace headroom
