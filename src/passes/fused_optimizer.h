// fused-optimizer: each weight is updated as soon as its gradient is final, inside the backward pass.
//
// What: an optimizer node of the training program moves into the body of the micro-batch loop, after the last node that
//   reads the weight or adds to its gradient; the gradient is no longer carried and dies there.
// Legal when: one micro-batch per step (else the gradient is not final) and no clipping by global norm (which needs
//   every gradient before the first update).
// Placed here because: after recompute, whose clones read weights in the backward pass: the update must come after
//   them.
// Saves: all gradients except those alive at once. Costs: nothing.
// Manuals: M3; torchtune's optimizer_in_bwd.
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kFusedOptimizer{
    "fused-optimizer", PassStage::schedule, TechniqueKind::exact,
    "update each weight inside the backward pass as soon as its gradient is complete"};

// Moves every update of the program's region into its loop. Returns how many moved.
int fuse_optimizer(Graph& graph, RegionId program);

}  // namespace headroom
