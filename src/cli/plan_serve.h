// `plan --serve`: what a server would hold within a budget.
#pragma once

#include "arguments/serving_options.h"
#include "engine/serving.h"

namespace headroom {

// Lines that name every region and what the sizes hold; of a plan that is feasible.
std::string serving_text(const ServingPlan& serving);

// Prints the plan, as JSON if asked for, and gives the exit code.
int run_plan_serve(ServingArguments arguments, bool json);

}  // namespace headroom
