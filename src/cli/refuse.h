// Exit code 3.
#pragma once

#include "plan/plan.h"

namespace headroom {

// Prints why a plan is not feasible and what to do; returns the exit code, 3.
int refuse(const Plan& plan);

}  // namespace headroom
