// The order of the passes, readable top to bottom.
#pragma once

#include <vector>

#include "passes/pass.h"
#include "passes/recompute.h"
#include "planner/request.h"

namespace headroom {

// One point of the search: everything the planner may choose.
struct Candidate {
  int64_t micro_batch = 1;
  int64_t loss_chunk = 0;  // rows; 0 = all
  std::vector<Keep> keep;  // per block
  bool weight_copies = false;
  bool fused_optimizer = false;
};

// The assembled graph with a candidate's schedule passes applied.
Graph expand(const Graph& assembled, const Candidate& candidate, bool verify, std::vector<PassTrace>* trace);

}  // namespace headroom
