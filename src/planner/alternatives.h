// What else could be asked for where a plan does not fit.
#pragma once

#include <string>
#include <vector>

#include "planner/request.h"

namespace headroom {

struct ChangedRequest {
  std::string options;  // that change it: "--max-seq-length 256", or words
  std::string effect;   // what else they change; may be empty
  PlanRequest request;
};

// Fills plan.alternatives and plan.cheapest_fix of a plan that does not fit `request`: what leaves the training as it
// is comes first (fewer pins, a tier below), then shorter sequences, then `other_trainings`, clipping turned off last.
// Alternatives that need as much memory as the request are left out. Their sizes are lower bounds that assigned offsets
// exceed by 0.3 % at most.
void find_alternatives(const PlanRequest& request, const std::vector<ChangedRequest>& other_trainings, Plan& plan);

}  // namespace headroom
