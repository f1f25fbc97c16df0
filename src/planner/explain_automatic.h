// Advice of tuning guides that every plan follows by itself.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace headroom {

struct AutomaticItem {
  std::string name;
  int64_t bytes = -1;  // bytes saved or bounded in the plan; -1: not known
  std::string why;
};

// The items of PyTorch's performance tuning guide that a feasible training plan follows by default, each with its bytes
// in this plan if it has any.
std::vector<AutomaticItem> automatic_items(const Plan& plan);

// The section of `plan --explain`: a line per item.
std::string explain_automatic(const Plan& plan);

}  // namespace headroom
