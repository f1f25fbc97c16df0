// Packing and length buckets in a plan's techniques.
#pragma once

#include "planner/bounds.h"

namespace headroom {

// Appends both to plan.techniques: why they are on or off, and the arena bytes against the same plan without.
void report_data_order(const PlanRequest& request, const Candidate& chosen, const Bound& reached, Plan& plan);

}  // namespace headroom
