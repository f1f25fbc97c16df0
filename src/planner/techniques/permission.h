// Permission, the pin of a technique that the planner may use and need not (Technique::by_permission).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/technique.h"

namespace headroom {

// The setting that --allow pins.
inline constexpr std::string_view kAllowed = "allowed";

// Whether its pin is permission, which does not ask for it.
inline bool only_allowed(const PlanRequest& request, const PassInfo& info) {
  return pin(request, info.name) == kAllowed;
}

// The choices of a technique with one setting that can be used here: on if it is named; off, or on, if it is allowed,
// and the losses may depend on the budget.
inline std::vector<Setting> permitted_choices(const PlanRequest& request, const PassInfo& info) {
  if (only_allowed(request, info) && request.arithmetic_fixed) return {Setting{}};
  if (only_allowed(request, info)) return {Setting{}, Setting{1}};
  return {asked_for(request, info) ? Setting{1} : Setting{}};
}

// Why one that is only allowed is not taken, if the reason is none of its own.
inline std::string why_not_taken(const PlanRequest& request, const PassInfo& info, std::string usual) {
  return only_allowed(request, info) && request.arithmetic_fixed
             ? "with --arithmetic fixed the budget does not decide whether it is used: only when named"
             : std::move(usual);
}

}  // namespace headroom
