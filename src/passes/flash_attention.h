// flash-attention: attention in tiles of queries and keys with a running softmax.
//
// What: nothing is rewritten: the kernels of attention never store its scores (ops/attention).
// Legal when: always, and always on. The sums of a softmax are formed in the order of the tiles.
// Placed here because: it is what plans, help and doctor say of these kernels; no pass of its own.
// Saves: batch x heads x sequence x sequence x 4 bytes for each layer. Costs: a second product for the scores in the
//   backward pass, and scratch per thread for a tile.
// Sources: Dao et al. 2022, "FlashAttention".
// Manuals: T16.
#pragma once

#include "passes/pass_info.h"

namespace headroom {

inline constexpr PassInfo kFlashAttention{"flash-attention", PassStage::schedule, TechniqueKind::reassociating,
                                          "attention in tiles, never a matrix of sequence x sequence"};

}  // namespace headroom
