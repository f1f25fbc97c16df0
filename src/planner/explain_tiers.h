// What lies in the tiers below the device, in `plan --explain`.
#pragma once

#include <string>

#include "plan/plan.h"

namespace headroom {

// Appends the arena of each lower tier by class; nothing where the plan has none.
void explain_lower_tiers(const Plan& plan, std::string& text);

}  // namespace headroom
