// packing: several rows of data in one sequence, each computed as if it were alone.
//
// What: the batch gives, for each token, the position at which its row begins. Positions count from there, attention
//   does not reach beyond it, and the first token of a row is not a target. Tiles of attention outside the row are
//   skipped, forward and backward.
// Legal when: named (--packing true) or allowed (--allow packing, data-order): other rows share a step, and a step of
//   the same number of sequences sees more of them. Only causal language models: their ops that depend on positions
//   take segments (Op::take_segments).
// Placed here because: it rewrites the forward graph; autodiff derives the matching backward pass.
// Saves: time in proportion to the padding. Costs: 4 bytes per token of a micro-batch.
// Manuals: M2 M3 M4 (T10, T11).
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kPacking{"packing", PassStage::model, TechniqueKind::data_order,
                                   "several rows in one sequence, with attention inside each row only"};

// Adds the segments to the batch of `region`, and passes them to attention and every op that reads positions.
void pack_rows(Graph& graph, RegionId region);

}  // namespace headroom
