// What is kept on the host, in a plan's techniques and in `plan --explain`.
#pragma once

#include <string>

#include "planner/bounds.h"

namespace headroom {

// Appends the offload techniques and prefetch to plan.techniques: device bytes and seconds against the same plan
// without each.
void report_offload(const PlanRequest& request, Bounder& bounder, const Candidate& chosen, const Bound& reached,
                    Plan& plan);

// Appends the host's arena by class; nothing when the plan has none.
void explain_host_parts(const Plan& plan, std::string& text);

}  // namespace headroom
