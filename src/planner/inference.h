// Plans without a search space worth the name: evaluation alone and token generation.
#pragma once

#include <functional>
#include <span>

#include "planner/request.h"

namespace headroom {

// Programs load and evaluate ("eval_batches" loop, as in training). The largest micro-batch of request.global_batch and
// its halves that fits, with the largest loss chunk. Where none fits, weights may lie below the device
// (weight_placement.h). Infeasible plans say the least budget.
Plan plan_evaluation(const PlanRequest& request);

// What will be generated.
struct GenerationWork {
  int64_t prompt_tokens = 1;
  int64_t new_tokens = 1;
};

// Programs load, prefill and decode. `build` makes the graph for a prefill chunk, to which adapters (request.lora) and
// the precision are applied, and whose linear layers of one input become groups; the largest of `chunks` (descending)
// that fits is taken. Where none fits, weights may lie below the device, as in plan_evaluation(); `work` says what
// their copies cost.
Plan plan_generation(const PlanRequest& request, const GenerationWork& work, std::span<const int64_t> chunks,
                     const std::function<Graph(int64_t chunk)>& build);

}  // namespace headroom
