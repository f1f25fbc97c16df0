// The order of the passes, readable top to bottom.
#pragma once

#include <vector>

#include "passes/pass.h"
#include "passes/recompute.h"
#include "planner/request.h"

namespace headroom {

// Where what a step keeps lies: on the device, or each technique in a tier below it.
struct Offload {
  Tier optimizer = Tier::device;
  Tier gradients = Tier::device;
  Tier parameters = Tier::device;
  Tier activations = Tier::device;
  int64_t parameter_layers = 0;   // layers whose weights leave the device, spread evenly; kEveryLayer: all weights
  int64_t activation_blocks = 0;  // leading blocks whose saved activations leave the device; none where they stay
  int64_t prefetch = 1;           // how many windows ahead copies start

  // The tier of the values of a role that do not stay on the device.
  Tier tier_of(Role role) const {
    return role == Role::optimizer   ? optimizer
           : role == Role::gradient  ? gradients
           : role == Role::parameter ? parameters
                                     : activations;
  }
  // Something lies in this tier, or in any below the device's.
  bool uses(Tier tier) const {
    return optimizer == tier || gradients == tier || parameters == tier || activations == tier;
  }
  bool any() const { return uses(Tier::host) || uses(Tier::disk); }
  bool operator==(const Offload&) const = default;
};

// One point of the search: everything the planner may choose.
struct Candidate {
  int64_t micro_batch = 1;
  int64_t loss_chunk = 0;  // rows; 0 = all
  std::vector<Keep> keep;  // per block
  bool weight_copies = false;
  bool fused_optimizer = false;
  bool accumulates = true;  // a step may have more than one micro-batch
  Offload offload;
};

// The assembled graph with a candidate's schedule passes applied: compute passes, then offload passes.
Graph expand(const Graph& assembled, const Candidate& candidate, bool verify, std::vector<PassTrace>* trace);

// The passes that say what is computed when: sizes, recompute, updates.
void run_compute_passes(Graph& graph, const Candidate& candidate, bool verify, std::vector<PassTrace>* trace);
// The passes that say where the results lie. They look at candidate.offload and, for gradients, at `accumulates`.
void run_offload_passes(Graph& graph, const Candidate& candidate, bool verify, std::vector<PassTrace>* trace);

// The sizes of a graph that has had its passes, or will have: the bound of the micro-batch and the loss's chunk.
void set_sizes(Graph& graph, const Candidate& candidate, bool verify, std::vector<PassTrace>* trace);

}  // namespace headroom
