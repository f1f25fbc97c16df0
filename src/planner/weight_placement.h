// Plans that only read the weights, with the placement of the weights: on the device or in a lower tier.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/request.h"

namespace headroom {

// Runs of a program, to weigh the seconds of a request.
struct ProgramRuns {
  std::string program;
  int64_t runs = 1;
  int64_t trips = 1;  // of its loops
};

// One way to compute the result, with the weights on the device.
struct Variant {
  Graph graph;
  int64_t micro_batch = 1;
  int64_t loss_chunk = 0;
  std::vector<ProgramRuns> work;
};

// Makes one of several variants. `verify`: its graph is checked after every pass, as that of a plan is; those that are
// only compared are not. lay_out() takes what was made for a plan.
using Variants = std::function<Variant(size_t which, bool verify)>;

// The placement of the weights of some layers.
struct Placement {
  Tier tier = Tier::host;
  int64_t layers = 0;  // kEveryLayer: all weights; 0: none, all are on the device
  int64_t depth = 0;   // of the prefetch
};

// The variant with its weights in this placement; `verify` as above.
Graph placed(const Variant& variant, const Placement& at, bool verify = false);

// The first of `count` variants (most memory first) that fits. If none does and a lower tier has a budget, the weights
// of some layers are kept there: for every variant, tier and depth of prefetch the fewest layers that fit, and of these
// the plan that is fastest for the work. `timed` names the program for plan.step_seconds. The pins offload-parameters
// and prefetch of the request are honoured. Infeasible plans give the least budget of each tier, and what a tier that
// the request lacks would change. Throws Error(usage) for pins that cannot be honoured.
Plan place_weights(const PlanRequest& request, size_t count, const Variants& variant, const std::string& timed);

// The least budget of the device with the variant's weights in lower tiers.
int64_t least_below(const PlanRequest& request, const Variant& variant);
// What a tier that the request lacks would change if nothing fits without it: "--disk-memory DIR:BYTES would need SIZE"
// or "--memory BYTES with --disk-memory DIR:BYTES"; empty if nothing would. `known` is the least budget without it.
std::string way_below(const PlanRequest& request, size_t count, const Variants& variant, const std::string& timed,
                      int64_t known);

// For each tier and each of the small depths of prefetch that pins allow, the placement that needs least of the device.
// Throws Error(usage) for pins that cannot be honoured.
std::vector<Placement> roomy_placements(const PlanRequest& request, const Variant& variant);
// Of the placements that pins allow, among those with the fewest layers that fit, the fastest for the work; none if
// nothing fits. `seconds`: of the work. Throws Error(usage) for pins that cannot be honoured.
std::optional<Placement> fastest_placement(const PlanRequest& request, const Variant& variant, double& seconds);
// The plan of a placement, with its report; feasible if it fits, and minimum_bytes is its peak.
Plan lay_out(const PlanRequest& request, const Variant& variant, const Placement& at, const std::string& timed);

// Throws Error(usage) for pins of techniques that do not apply without training, or of bad settings.
void check_untrained_pins(const PlanRequest& request);
// The arenas of a graph, as lay_out() assigns them with weights in lower tiers (`below`) or without. Pure.
TierBytes arenas_of(const PlanRequest& request, const Graph& graph, bool below);
// The plan of a variant as it is; feasible if it fits, and minimum_bytes is its peak. `timed` as above.
Plan lay_out(const PlanRequest& request, const Variant& variant, const std::string& timed);

// "offload-parameters disk:22, prefetch 1: 148 MiB of weights"; empty if all are on the device.
std::string describe_placement(const Plan& plan);

}  // namespace headroom
