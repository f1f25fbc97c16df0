// The reasons for a plan, in bytes and seconds.
#pragma once

#include <string>

#include "planner/bounds.h"
#include "planner/search.h"

namespace headroom {

// Fills plan.techniques: for each technique the choice, and what it saves and costs against the same plan without it.
void report_techniques(const PlanRequest& request, Bounder& bounder, const Candidate& chosen, const Bound& reached,
                       Plan& plan);

// Text for `plan --explain`: the budget by class, techniques, the frontier with the chosen point marked.
std::string explain(const PlanRequest& request, const SearchResult& result);

}  // namespace headroom
