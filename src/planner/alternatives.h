// Changes of a request that does not fit.
#pragma once

#include <string>
#include <vector>

#include "planner/request.h"

namespace headroom {

struct ChangedRequest {
  std::string options;  // the options to change: "--max-seq-length 256", or words
  std::string effect;   // what else this changes; may be empty
  PlanRequest request;
};

// Fills plan.alternatives and plan.cheapest_fix of a plan that does not fit `request`: first changes that do not affect
// the training (fewer pins, a lower tier), then shorter sequences, then `other_trainings`, and last turning clipping
// off. Alternatives that need as much memory as the request are left out. Their sizes are lower bounds, which assigned
// offsets exceed by at most 0.3 %.
void find_alternatives(const PlanRequest& request, const std::vector<ChangedRequest>& other_trainings, Plan& plan);

}  // namespace headroom
