// The record of matmul-precision, and its setting for other techniques.
#pragma once

#include <string>

#include "planner/technique.h"

namespace headroom {

namespace techniques {
extern const Technique matmul_precision;
}

// "highest", "high", "medium" or "fp8".
std::string matmul_precision_of(const PlanRequest& request);

}  // namespace headroom
