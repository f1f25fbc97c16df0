// The text for a budget that holds no plan.
#pragma once

#include <string>

#include "plan/plan.h"

namespace headroom {

struct Refusal {
  std::string message;  // the shortfall and the least budget
  std::string remedy;   // the cheapest change that would fit, and what a few other settings would need
};

// For a plan that is not feasible.
Refusal refusal_of(const Plan& plan);

// Throws Error(does_not_fit) with this text for a plan that is not feasible.
void throw_if_unfit(const Plan& plan);

}  // namespace headroom
