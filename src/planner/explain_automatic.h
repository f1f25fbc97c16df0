// What tuning guides ask people to do by hand and the graph implies here.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace headroom {

struct AutomaticItem {
  std::string name;
  int64_t bytes = -1;  // that it saves or bounds, from the plan; -1: the plan knows none
  std::string why;
};

// The items of PyTorch's performance tuning guide that a feasible training plan has without being asked, each with its
// bytes in this plan where it has any.
std::vector<AutomaticItem> automatic_items(const Plan& plan);

// The section of `plan --explain`: a line per item.
std::string explain_automatic(const Plan& plan);

}  // namespace headroom
