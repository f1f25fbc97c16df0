// What the techniques that move values to a tier below the device share: their pins, their settings (tier: where;
// count: of how many layers), and which are tried together.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "passes/offload_parameters.h"
#include "planner/technique.h"

namespace headroom {

namespace techniques {
extern const Technique offload_activations, offload_optimizer, offload_gradients, offload_parameters, prefetch;
}

// The four of them, in the order in which they are decided.
std::array<const Technique*, 4> offload_techniques();

// Whether a candidate keeps anything below the device.
bool offloads(const Candidate& candidate);

// The tier of the values of each role that a candidate moves.
struct KeptIn {
  Tier optimizer = Tier::device;
  Tier gradients = Tier::device;
  Tier parameters = Tier::device;
  Tier activations = Tier::device;

  explicit KeptIn(const Candidate& candidate);
  Tier of(Role role) const {
    return role == Role::optimizer   ? optimizer
           : role == Role::gradient  ? gradients
           : role == Role::parameter ? parameters
                                     : activations;
  }
  bool uses(Tier tier) const {
    return optimizer == tier || gradients == tier || parameters == tier || activations == tier;
  }
};

// How many windows ahead of their use a candidate's copies start.
inline int64_t prefetch_of(const Candidate& candidate) { return candidate[techniques::prefetch].count; }

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

// Throws Error(usage) when `setting` is not one of an offload technique, or needs a lower tier that the request does
// not have.
void check_offload(const PlanRequest& request, const PassInfo& info, const std::string& setting);
void check_prefetch(const PlanRequest& request, const std::string& setting);

// How --technique spells where something lies: "off", "host", "disk", and of a number of layers "disk:12".
std::string tier_setting(Tier tier);
std::string tier_setting(Tier tier, int64_t layers);

// Why an offload technique, or prefetch, is not taken at all; nothing where the request has a lower tier.
Verdict needs_lower_tier(const PlanRequest& request);

// What the records of the four have in common.
template <const Technique& technique, const PassInfo& info>
struct OffloadRecord {
  static void check(const PlanRequest& request, const std::string& setting) { check_offload(request, info, setting); }

  // The same kept in the other tiers that pins allow, the fastest first.
  static std::vector<Setting> same_graph(const PlanRequest& request, const Candidate& candidate) {
    std::vector<Setting> out{candidate[technique]};
    if (out.front().tier == Tier::device) return out;
    const std::vector<Tier> tiers = allowed_tiers(request, info.name);
    for (size_t i = 1; i < tiers.size(); ++i) {
      out.push_back(out.front());
      out.back().tier = tiers[i];
    }
    return out;
  }

  // Every tier below the device makes the same graph.
  static Setting in_graph(const PlanRequest&, const Candidate& candidate) {
    Setting setting = candidate[technique];
    if (setting.tier != Tier::device) setting.tier = Tier::host;
    return setting;
  }

  static Told told(const PlanRequest&, const Candidate& chosen) {
    const Setting& setting = chosen[technique];
    Told out{tier_setting(setting.tier, setting.count > 0 ? setting.count : kEveryLayer),
             "against keeping it on the device"};
    if (!setting.taken()) return out;
    out.without = chosen.without(technique);
    return out;
  }
};

// Of the combinations that are tried, the settings of the `which`-th of offload_techniques() beside those of the ones
// before it, which `decided` holds. `layers`: what its count becomes where it is taken.
std::vector<Setting> offload_choices(const PlanRequest& request, const Candidate& decided, size_t which,
                                     int64_t layers);
// The layers that a technique's pin counts, at most `blocks`; else `all`.
int64_t pinned_layers(const PlanRequest& request, std::string_view name, int64_t blocks, int64_t all);

// "21.2 GiB of host: gradients, weights; 50.3 GiB of disk: states, activations of 12 layers; prefetch 1", or empty.
std::string describe_offload(const Candidate& candidate, const TierBytes& peaks);

}  // namespace headroom
