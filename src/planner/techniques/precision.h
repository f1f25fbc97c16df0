// The records of bf16-mixed and bf16-true, and the precision that they make.
#pragma once

#include <string>

#include "planner/technique.h"

namespace headroom {

namespace techniques {
extern const Technique bf16_mixed, bf16_true;
}

// Setting::form of bf16-mixed: copies of the weights are kept; else they are rounded when used.
inline constexpr uint8_t kWeightCopies = 1;

// "32-true", "bf16-mixed" or "bf16-true".
std::string precision_of(const PlanRequest& request);

// The pin of a precision other than 32-true is that of its technique.
void set_precision(PlanRequest& request, const std::string& precision);

}  // namespace headroom
