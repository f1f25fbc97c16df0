// offload-gradients: gradients are accumulated on the host or disk; each is on the device only while a layer adds to
// it.
//
// What: the accumulators of matrices that the loop over micro-batches carries move to the tier. The backward nodes of a
//   layer add into windows of the device (device_windows.h), which are copied back; the norm and the update read them
//   through windows again:
//     acc' = linear_dw(x, dy, acc)
//   becomes
//     start acc; ...; a = wait; a' = linear_dw(x, dy, a); start a' -> acc; ...; acc' = wait
//   Copies in start `depth` layers ahead. With one micro-batch per step the first addition overwrites the accumulator,
//   so nothing is copied in for it.
// Legal when: always; the same sums in the same order. Vectors stay: a copy costs more than they take. Without effect
//   if updates run inside the backward pass (fused-optimizer): then no gradient is carried.
// Placed here because: after fused-optimizer, which decides which gradients are carried.
// Saves: the gradients except 2 depth + 1 layers of them. Costs: each gradient crosses the link twice per micro-batch
//   (once if there is one) and twice for norm and update.
// Manuals: M3 (T13, T14); torchao's CPUOffloadOptimizer offloads gradients, without accumulation or clipping.
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kOffloadGradients{
    "offload-gradients", PassStage::schedule, TechniqueKind::exact,
    "gather the gradients on the host or disk, a layer at a time on the device"};

// Moves the carried gradients of matrices to a tier. `accumulates`: a step may have more than one micro-batch.
void offload_gradients(Graph& graph, Tier to, int64_t depth, bool accumulates);

}  // namespace headroom
