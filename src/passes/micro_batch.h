// micro-batch: how many sequences of the global batch go through the network at once.
//
// What: binds the symbol "batch"; the loop over micro-batches accumulates gradients, its trip count follows.
// Legal when: always; the loss is normalised over the target tokens of the whole global batch, known before the first
//   micro-batch, so no micro-batch is weighted by its size.
// Placed here because: everything after it (chunk sizes, scratch, lifetimes) depends on the bound.
// Saves: activations, in proportion. Costs: less efficient products, one more accumulation of every gradient per trip.
// Manuals: M0 M1 M2 M3 M4 (T01, T02).
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kMicroBatch{"micro-batch", PassStage::schedule, TechniqueKind::reassociating,
                                      "run the global batch in smaller pieces and accumulate their gradients"};

// Sets the bound of symbol "batch" to `sequences`.
void set_micro_batch(Graph& graph, int64_t sequences);

}  // namespace headroom
