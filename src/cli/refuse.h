// Exit code 3.
#pragma once

#include "plan/plan.h"

namespace headroom {

// Prints why a plan is not feasible and what to do; gives the exit code.
int refuse(const Plan& plan);

}  // namespace headroom
