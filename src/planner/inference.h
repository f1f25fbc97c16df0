// Plans with almost no search: evaluation and token generation.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "planner/request.h"

namespace headroom {

// Programs load and evaluate ("eval_batches" loop, as in training). The largest micro-batch of request.global_batch and
// its halves that fits, with the largest loss chunk. If none fits, weights may be kept in lower tiers
// (weight_placement.h). Infeasible plans give the least budget.
Plan plan_evaluation(const PlanRequest& request);

// The generation.
struct GenerationWork {
  int64_t prompt_tokens = 1;
  int64_t new_tokens = 1;
};

// Programs load, prefill and decode. `build` makes the graph for a prefill chunk, to which adapters (request.lora) and
// the precision are applied, and whose linear layers of one input become groups; the largest of `chunks` (descending)
// that fits is used. If none fits, weights may be kept in lower tiers, as in plan_evaluation(); `work` is used to weigh
// the cost of their copies.
Plan plan_generation(const PlanRequest& request, const GenerationWork& work, std::span<const int64_t> chunks,
                     const std::function<Graph(int64_t chunk)>& build);

// The plan of any number of texts, one after another: `programs` of the graph are the largest prefill, which reads
// `chunk` tokens, the smaller ones, and "decode", with the same techniques. All weights are on the device, and pins
// that keep them elsewhere are not for this plan. Not feasible, without alternatives, if it does not fit.
Plan plan_texts(const PlanRequest& request, Graph graph, std::span<const std::string> programs, int64_t chunk);

}  // namespace headroom
