// compress-activations: the values that layers keep for the backward pass are stored as 8-bit codes.
//
// What: in the body of the training loop, a forward value of a layer that backward nodes read, all of them in layers,
//   is encoded as soon as it exists (int8 with a scale per row) and decoded before the first backward node of a layer
//   that reads it. The forward pass itself reads the unrounded value.
//     h = norm(x); y = linear(h)   ...   dw = linear_dw(h, dy)
//   becomes
//     h = norm(x); k = encode_rows(h); y = linear(h)   ...   h' = decode_rows(k); dw = linear_dw(h', dy)
// Legal when: named or allowed. Lossy: gradients are those of rounded activations; loss and forward pass are unchanged.
//   Values without rows of a known length of at least 8 (attention's statistics) are not compressed.
// Placed here because: after recompute and sequence-chunks, which decide what is kept; before offload-activations,
//   which then moves the codes.
// Saves: three quarters of a 32-bit value and half of a 16-bit one, except 4 bytes per row. Costs: reading and writing
//   the value twice.
// Sources: Chen et al. 2021, "ActNN"; Liu et al. 2022, "GACT".
// Manuals: T03.
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kCompressActivations{"compress-activations", PassStage::schedule, TechniqueKind::lossy,
                                               "keep activations for the backward pass in 8 bits: int8"};

// Acts on every loop body that holds both forward and backward nodes; returns how many values are kept as codes.
int64_t compress_activations(Graph& graph);

}  // namespace headroom
