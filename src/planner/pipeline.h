// The order of the passes, readable top to bottom.
#pragma once

#include <vector>

#include "passes/pass.h"
#include "passes/recompute.h"
#include "planner/request.h"

namespace headroom {

// What is kept in a tier below the device.
struct Offload {
  bool optimizer = false;
  bool gradients = false;
  bool parameters = false;
  int64_t activation_blocks = 0;  // leading blocks whose saved activations wait there
  int64_t prefetch = 1;           // how many windows ahead copies start
  Tier tier = Tier::host;         // host or disk; of no meaning when nothing is kept there
  bool any() const { return optimizer || gradients || parameters || activation_blocks > 0; }
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

// The assembled graph with a candidate's schedule passes applied.
Graph expand(const Graph& assembled, const Candidate& candidate, bool verify, std::vector<PassTrace>* trace);

}  // namespace headroom
