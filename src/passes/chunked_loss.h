// chunked-loss: the head and its cross-entropy, a chunk of rows at a time.
//
// What: sets the number of rows per chunk of every linear_cross_entropy node. Logits exist for one chunk only, as
//   scratch of the node; each chunk is visited once, for both forward and backward.
// Legal when: always; the loss is a sum over rows, the head's gradient a sum over chunks.
// Placed here because: after micro-batch, whose bound limits the rows; before recompute, since scratch decides the
//   peak.
// Saves: (rows - chunk) x vocabulary x 4 bytes. Costs: one more pass over the head's gradient per chunk.
// Manuals: M3 (T19); T03.
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kChunkedLoss{"chunked-loss", PassStage::schedule, TechniqueKind::reassociating,
                                       "compute the head and its loss in chunks of rows, never holding all logits"};

// Rows per chunk for every loss node; 0 = all rows at once.
void set_loss_chunk(Graph& graph, int64_t rows);

}  // namespace headroom
