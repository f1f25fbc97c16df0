// The record of length-buckets, and what others ask of it.
#pragma once

#include <vector>

#include "memory/liveness.h"
#include "planner/technique.h"

namespace headroom {

namespace techniques {
extern const Technique length_buckets;
}

// The shorter sequence lengths that get programs of their own; none unless the request asks for buckets.
std::vector<int64_t> bucket_choices(const PlanRequest& request);

// The graph's sizes at one of these lengths.
Bindings bucket_bindings(const Graph& graph, int64_t length);

// The liveness of a graph of training at its full length, whose scratch serves the shorter lengths too.
Liveness training_liveness(const Graph& graph, const PlanRequest& request);

}  // namespace headroom
