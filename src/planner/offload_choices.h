// What may be kept in the tiers below the device: pins, and the choices of the search.
#pragma once

#include <string>
#include <vector>

#include "planner/pipeline.h"
#include "planner/request.h"

namespace headroom {

// True for the names of techniques whose pins check_offload_pin() judges.
bool is_offload_technique(std::string_view name);

// The tiers below the device that the request has a budget for, the faster first.
std::vector<Tier> offload_tiers(const PlanRequest& request);

// Throws Error(usage) when `value` is no setting of an offload technique, or needs a lower tier that the request does
// not have.
void check_offload_pin(const PlanRequest& request, const std::string& name, const std::string& value);

// What is worth keeping below the device, the least first, the most last; each in the fastest tier that its pin allows,
// prefetch 1 unless pinned. One setting that keeps nothing there when the request has no such tier. Independent of the
// budgets.
std::vector<Offload> offload_choices(const PlanRequest& request, int64_t blocks);

// The same kept in all combinations of the tiers that pins allow; the fastest first.
std::vector<Offload> tier_choices(const PlanRequest& request, const Offload& offload);

// Other depths of prefetch to try for a setting of offload_choices().
std::vector<int64_t> prefetch_choices(const PlanRequest& request, const Offload& offload);

// How --technique spells where something lies: "off", "host", "disk", and of activations "disk:12".
std::string tier_setting(Tier tier);
std::string activations_setting(const Offload& offload);

// "21.2 GiB of host: gradients, weights; 50.3 GiB of disk: states, activations of 12 layers; prefetch 1", or empty.
std::string describe_offload(const Offload& offload, const TierBytes& peaks);

}  // namespace headroom
