// offload-optimizer: the states of the optimizer live on the host or disk; those of a weight are on the device only
// while its update runs.
//
// What: the states of every matrix, whatever their shape, move to the tier. An update works on windows of the device
//   (device_windows.h):
//     w', m', v' = adamw(w, g, m, v)
//   becomes
//     start m; start v; ...; wait m; wait v; w', m', v' = adamw(w, g, m, v); start m' -> tier; start v' -> tier; ...
//   Copies in start `depth` updates ahead, copies out are waited for `depth` updates later. Tables larger than every
//   matrix of a layer are updated a slice at a time (update_slices.h).
// Legal when: always; bytes are copied, never changed. Vectors stay: a copy costs more than they take.
// Placed here because: after fused-optimizer, which moves updates; before offload-parameters, whose windows may hold
//   the weight of the same update.
// Saves: the states except 2 depth + 1 windows. Costs: each state crosses the link twice per step, concurrently with
//   the kernels.
// Manuals: M2 M3 (T13, T14); ZeRO-Offload (Ren et al. 2021).
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kOffloadOptimizer{
    "offload-optimizer", PassStage::schedule, TechniqueKind::exact,
    "keep the optimizer's states on the host or disk and copy them to each update"};

// Moves the states of matrices to a tier.
void offload_optimizer(Graph& graph, Tier to, int64_t depth);

}  // namespace headroom
