// The contents of the lower tiers, in `plan --explain`.
#pragma once

#include <string>

#include "plan/plan.h"

namespace headroom {

// Appends the arena of each lower tier by class; nothing if the plan has none.
void explain_lower_tiers(const Plan& plan, std::string& text);

}  // namespace headroom
