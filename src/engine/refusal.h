// The message of exit code 3.
#pragma once

#include "plan/plan.h"

namespace headroom {

// On stderr: the shortfall, the least budget, the cheapest change that would fit, and what a few other settings would
// need.
void print_refusal(const Plan& plan);

}  // namespace headroom
