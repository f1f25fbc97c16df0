// packing: several rows of data in one sequence, each as if it were alone.
//
// What: the batch comes with the position at which the row of each token begins. Positions count from there, attention
//   does not reach beyond it, and the first token of a row is not a target. Tiles of attention that lie outside the row
//   are skipped, forward and backward.
// Legal when: named (--packing true) or allowed (--allow packing, data-order): other rows share a step, and a step of
//   the same number of sequences sees more of them. Causal language models, whose op list names every use of a
//   position.
// Placed here because: it rewrites the forward graph; the backward pass follows by itself.
// Saves: the padding: time in proportion. Costs: 4 bytes per token of a micro-batch.
// Manuals: M2 M3 M4 (T10, T11).
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kPacking{"packing", PassStage::model, TechniqueKind::data_order,
                                   "several rows in one sequence, which do not see each other"};

// Gives the batch of `region` its segments, and hands them to attention and to all that reads positions.
void pack_rows(Graph& graph, RegionId region);

}  // namespace headroom
