// What is kept in the tiers below the device, in a plan's techniques and in `plan --explain`.
#pragma once

#include <string>

#include "planner/bounds.h"

namespace headroom {

// Appends the offload techniques and prefetch to plan.techniques: device bytes and seconds against the same plan
// without each.
void report_offload(const PlanRequest& request, Bounder& bounder, const Candidate& chosen, const Bound& reached,
                    Plan& plan);

// Appends the arena of each lower tier by class; nothing where the plan has none.
void explain_lower_tiers(const Plan& plan, std::string& text);

}  // namespace headroom
