// offload-activations: the values that layers keep for the backward pass are in a tier below the device: host or disk.
//
// What: in the body of the training loop, a forward value that backward nodes of a treated block read is copied to the
//   tier as soon as it exists, and dies on the device after its last forward reader; the backward nodes read a window
//   (device_windows.h) that was copied in `depth` units (usually layers) ahead.
//     h = norm(x); y = linear(h)   ...   dw = linear_dw(h, dy)
//   becomes
//     h = norm(x); start h -> tier; y = linear(h); ...; k = wait   ...   start k; ...; h1 = wait;
//     dw = linear_dw(h1, dy)
// Legal when: always; bytes are copied, never changed. Values below a sixteenth of the largest (compared per sequence,
//   so that the micro-batch does not matter) stay: many small copies would save little.
// Placed here because: after recompute: recomputed values are not kept anywhere.
// Saves: the treated blocks' saved activations except 2 depth + 1 blocks of them. The first blocks are treated first:
//   their activations live longest. Costs: each value crosses the link twice per micro-batch, concurrently with the
//   kernels.
// Manuals: T13; ZeRO-Infinity, torchtune's enable_activation_offloading.
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kOffloadActivations{
    "offload-activations", PassStage::schedule, TechniqueKind::exact,
    "keep activations on the host or disk until the backward pass needs them"};

// Treats the blocks [0, blocks) in every loop body that holds both forward and backward nodes.
void offload_activations(Graph& graph, Tier to, int64_t blocks, int64_t depth);

}  // namespace headroom
