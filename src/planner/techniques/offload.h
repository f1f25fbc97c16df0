// The common part of the techniques that move values to a lower tier: their pins, their settings (tier: where; count:
// of how many layers), and which are tried together.
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

// Whether a candidate keeps anything in a lower tier.
bool offloads(const Candidate& candidate);

// Whether it keeps everything there: states, weights and the activations of all `layers`.
bool offloads_all(const Candidate& candidate, int64_t layers);

// The tier for each role of values that a candidate moves.
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

// How many windows before their use a candidate's copies start.
inline int64_t prefetch_of(const Candidate& candidate) { return candidate[techniques::prefetch].count; }

// The lower tiers for which the request has a budget, the faster first.
std::vector<Tier> offload_tiers(const PlanRequest& request);

// The pin of an offload technique.
struct OffloadPin {
  bool off = false;
  std::optional<Tier> tier;  // none: any
  int64_t layers = 0;        // of weights or activations; 0: all
};
// The checked pin of a technique, if it has one.
std::optional<OffloadPin> offload_pin(const PlanRequest& request, std::string_view name);
// The tiers that a technique may use, the faster first; the device's for a pin that is off.
std::vector<Tier> allowed_tiers(const PlanRequest& request, std::string_view name);
// The checked pin of prefetch: windows ahead; nothing without a pin.
std::optional<int64_t> pinned_prefetch(const PlanRequest& request);

// Throws Error(usage) if `setting` is not one of an offload technique, or needs a lower tier that the request does not
// have.
void check_offload(const PlanRequest& request, const PassInfo& info, const std::string& setting);
void check_prefetch(const PlanRequest& request, const std::string& setting);

// The setting for --technique: "off", "host", "disk", and with a number of layers "disk:12".
std::string tier_setting(Tier tier);
std::string tier_setting(Tier tier, int64_t layers);

// Why an offload technique, or prefetch, cannot be used at all; nothing if the request has a lower tier.
Verdict needs_lower_tier(const PlanRequest& request);

// The common part of the four records.
template <const Technique& technique, const PassInfo& info>
struct OffloadRecord {
  static void check(const PlanRequest& request, const std::string& setting) { check_offload(request, info, setting); }

  // The same in the other tiers that pins allow, the fastest first.
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
             "compared with keeping it on the device"};
    if (!setting.taken()) return out;
    out.without = chosen.without(technique);
    return out;
  }
};

// Of the combinations that are tried, the settings of the `which`-th of offload_techniques() given those of the ones
// before it, which `decided` holds. `layers`: its count if it is used.
std::vector<Setting> offload_choices(const PlanRequest& request, const Candidate& decided, size_t which,
                                     int64_t layers);
// The number of layers in a technique's pin, at most `blocks`; else `all`.
int64_t pinned_layers(const PlanRequest& request, std::string_view name, int64_t blocks, int64_t all);

// "21.2 GiB of host: gradients, weights; 50.3 GiB of disk: states, activations of 12 layers; prefetch 1", or empty.
std::string describe_offload(const Candidate& candidate, const TierBytes& peaks);

}  // namespace headroom
