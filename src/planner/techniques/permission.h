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

// Whether it is only allowed, and the budget may not decide whether it is used, because the losses would depend on it.
inline bool needs_a_name(const PlanRequest& request, const PassInfo& info) {
  return request.arithmetic_fixed && only_allowed(request, info);
}

// The choices of a technique with one setting that can be used here: on if it is named; off, or on, if it is allowed.
inline std::vector<Setting> permitted_choices(const PlanRequest& request, const PassInfo& info) {
  if (needs_a_name(request, info)) return {Setting{}};
  if (only_allowed(request, info)) return {Setting{}, Setting{1}};
  return {asked_for(request, info) ? Setting{1} : Setting{}};
}

// What is told of one that is not taken; `why`: the usual reason.
inline Told told_not_taken(const PlanRequest& request, const PassInfo& info, std::string why) {
  if (!needs_a_name(request, info)) return {"off", std::move(why)};
  return {.value = "off",
          .why = "with --arithmetic fixed the budget does not decide whether it is used: only when named",
          .pin_leaves_choice = true};
}

}  // namespace headroom
