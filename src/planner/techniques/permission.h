// Permission, the pin of a technique that the planner may use and need not (Technique::by_permission).
#pragma once

#include <string_view>
#include <vector>

#include "planner/technique.h"

namespace headroom {

// The setting that --allow pins.
inline constexpr std::string_view kAllowed = "allowed";

// Whether its pin is permission, which does not ask for it.
inline bool only_allowed(const PlanRequest& request, const PassInfo& info) {
  return pin(request, info.name) == kAllowed;
}

// The choices of a technique with one setting that can be used here: on if it is named; off, or on, if it is allowed.
inline std::vector<Setting> permitted_choices(const PlanRequest& request, const PassInfo& info) {
  if (only_allowed(request, info)) return {Setting{}, Setting{1}};
  return {asked_for(request, info) ? Setting{1} : Setting{}};
}

}  // namespace headroom
