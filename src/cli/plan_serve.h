// `plan --serve`: what a server can hold within a budget.
#pragma once

#include "arguments/serving_options.h"
#include "engine/serving.h"

namespace headroom {

// Lines about every region and the sizes of a feasible plan.
std::string serving_text(const ServingPlan& serving);

// Prints the plan, as JSON if asked for, and returns the exit code.
int run_plan_serve(ServingArguments arguments, bool json);

}  // namespace headroom
