// Plans that only read the weights: where they lie, on the device or in a tier below it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/request.h"

namespace headroom {

// Runs of a program, for the seconds of what a request asks for.
struct ProgramRuns {
  std::string program;
  int64_t runs = 1;
  int64_t trips = 1;  // of its loops
};

// One way to compute what is asked for, the weights on the device.
struct Variant {
  Graph graph;
  int64_t micro_batch = 1;
  int64_t loss_chunk = 0;
  std::vector<ProgramRuns> work;
};

// The first of `count` variants (most memory first) that fits. Where none does and a tier below the device has a
// budget, the weights of some layers lie there: of every variant, tier and depth of prefetch the fewest layers that
// fit, and of these the plan whose work is done first. `timed` names the program that plan.step_seconds is of. The pins
// offload-parameters and prefetch of the request are honoured. Infeasible plans say the least budget of each tier, and
// what a tier that the request lacks would change. Throws Error(usage) for pins that cannot be honoured.
Plan place_weights(const PlanRequest& request, size_t count, const std::function<Variant(size_t)>& variant,
                   const std::string& timed);

// Throws Error(usage) for pins of techniques that do not apply to a model that is not trained, or of bad settings.
void check_untrained_pins(const PlanRequest& request);
// The arenas that a graph takes, as lay_out() assigns them. Pure.
TierBytes arenas_of(const PlanRequest& request, const Graph& graph);
// The plan of a variant as it is; feasible where it fits, and minimum_bytes is its peak. `timed` as above.
Plan lay_out(const PlanRequest& request, const Variant& variant, const std::string& timed);

// "offload-parameters disk:22, prefetch 1: 148 MiB of weights"; empty where all lie on the device.
std::string describe_placement(const Plan& plan);

}  // namespace headroom
