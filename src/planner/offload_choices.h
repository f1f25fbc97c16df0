// What may be kept in the tiers below the device: pins, and the choices of the search.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/pipeline.h"
#include "planner/request.h"

namespace headroom {

// True for the names of techniques whose pins check_offload_pin() checks.
bool is_offload_technique(std::string_view name);

// The tiers below the device that the request has a budget for, the faster first.
std::vector<Tier> offload_tiers(const PlanRequest& request);

// What a pin of an offload technique says.
struct OffloadPin {
  bool off = false;
  std::optional<Tier> tier;  // none: any
  int64_t layers = 0;        // of weights or activations; 0: all
};
// The checked pin of a technique, where it has one.
std::optional<OffloadPin> offload_pin(const PlanRequest& request, std::string_view name);
// The tiers that may hold what a technique keeps, the faster first; the device's for a pin that is off.
std::vector<Tier> allowed_tiers(const PlanRequest& request, std::string_view name);
// What a checked pin of prefetch says: windows ahead; none without a pin.
std::optional<int64_t> pinned_prefetch(const PlanRequest& request);

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

// How --technique spells where something lies: "off", "host", "disk", and of a number of layers "disk:12".
std::string tier_setting(Tier tier);
std::string tier_setting(Tier tier, int64_t layers);

// The option that gives a tier below the device's a budget: "--disk-memory DIR:4096".
std::string tier_option(Tier tier, int64_t bytes);

// "21.2 GiB of host: gradients, weights; 50.3 GiB of disk: states, activations of 12 layers; prefetch 1", or empty.
std::string describe_offload(const Offload& offload, const TierBytes& peaks);

}  // namespace headroom
