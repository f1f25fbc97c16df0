// The record of length-buckets, and its setting for other techniques.
#pragma once

#include <vector>

#include "memory/liveness.h"
#include "planner/technique.h"

namespace headroom {

namespace techniques {
extern const Technique length_buckets;
}

// The shorter sequence lengths that get their own programs; none unless the request wants buckets.
std::vector<int64_t> bucket_choices(const PlanRequest& request);

// The lengths that have programs: the request's own, and the shorter ones.
inline int64_t lengths_of(const PlanRequest& request) {
  return 1 + static_cast<int64_t>(bucket_choices(request).size());
}

// The graph's sizes at one of these lengths.
Bindings bucket_bindings(const Graph& graph, int64_t length);

// The liveness of a training graph at its full length, with scratch that is also enough for the shorter lengths.
Liveness training_liveness(const Graph& graph, const PlanRequest& request);

}  // namespace headroom
