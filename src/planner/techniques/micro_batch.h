// The record of micro-batch, and its setting for other techniques.
#pragma once

#include <map>
#include <string>

#include "planner/technique.h"

namespace headroom {

namespace techniques {
extern const Technique micro_batch;
}

// Sequences of a micro-batch.
inline int64_t micro_batch_of(const Candidate& candidate) { return candidate[techniques::micro_batch].count; }

// Whether the candidate's step has more than one micro-batch, whose gradients are summed.
inline bool accumulates(const PlanRequest& request, const Candidate& candidate) {
  return micro_batch_of(candidate) < request.global_batch;
}
inline int64_t accumulation_steps(const PlanRequest& request, int64_t micro_batch) {
  return (request.global_batch + micro_batch - 1) / micro_batch;
}

// The number of sequences in its pin; 0: the planner chooses.
int64_t pinned_micro_batch(const PlanRequest& request);
// Pins it to `size` sequences; 0: leaves it to the planner.
void pin_micro_batch(std::map<std::string, Pin>& techniques, int64_t size, std::string why = {});

// Whether a part of the loss is not a sum over sequences, like the balance of experts' loads: another micro-batch then
// gives another loss, so it is the global batch unless pinned.
bool loss_spans_batch(const PlanRequest& request);

}  // namespace headroom
