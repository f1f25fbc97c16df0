// What may be kept in the tiers below the device: pins, and the choices of the search.
#pragma once

#include <string>
#include <vector>

#include "planner/pipeline.h"
#include "planner/request.h"

namespace headroom {

// True for the names of techniques whose pins check_offload_pin() judges.
bool is_offload_technique(std::string_view name);

// The tiers below the device that the request has a budget for.
std::vector<Tier> offload_tiers(const PlanRequest& request);

// Throws Error(usage) when `value` is no setting of an offload technique, or needs a lower tier that the request does
// not have.
void check_offload_pin(const PlanRequest& request, const std::string& name, const std::string& value);

// The settings worth looking at, of each tier the one that keeps least there first, most last; prefetch is 1 unless
// pinned. One setting that keeps nothing there when the request has no such tier. Independent of the budgets.
std::vector<Offload> offload_choices(const PlanRequest& request, int64_t blocks);

// Other depths of prefetch to try for a setting of offload_choices().
std::vector<int64_t> prefetch_choices(const PlanRequest& request, const Offload& offload);

// "states, gradients, activations of 12 layers; prefetch 1", or empty.
std::string describe_offload(const Offload& offload);

}  // namespace headroom
