// compress-gradients: the gradients of the layers' matrices are kept in bf16 until the update reads them.
//
// What: the loop over micro-batches carries the accumulator of such a matrix in bf16. The layer's backward nodes add to
//   an fp32 copy of it, which lives while they run; norm and update read it through an fp32 copy each:
//     acc' = linear_dw(x, dy, acc: f32)
//   becomes
//     w = cast(acc: bf16); w' = linear_dw(x, dy, w); acc': bf16 = cast(w', acc)
//   So a sum is rounded to nearest once per micro-batch. With one micro-batch per step the first addition overwrites
//   the accumulator, so nothing is cast for it. The gradient norm, and clipping by it, are those of the rounded
//   gradients, which the update uses.
// Legal when: named (--technique compress-gradients=bf16) or allowed: lossy. Vectors stay in fp32, since they are
//   small, and so do embeddings and the head: an fp32 copy of one of those at the loss would take more than bf16 saves.
//   Without effect if updates run inside the backward pass (fused-optimizer): then no gradient is carried.
// Placed here because: after fused-optimizer, which decides which gradients are carried, and after recompute and
//   sequence-chunks, which decide in how many nodes a gradient is added up; before offload-gradients, which moves what
//   is carried.
// Saves: 2 bytes for each element of these matrices, less one fp32 copy at a time. Costs: the casts, 12 bytes of
//   traffic per element and micro-batch, and 12 for norm and update.
// Sources: DeepSpeed's data_types.grad_accum_dtype; gradients of Megatron-LM without
//   accumulate_allreduce_grads_in_fp32.
#pragma once

#include <cstdint>

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kCompressGradients{
    "compress-gradients", PassStage::schedule, TechniqueKind::lossy,
    "keep the layers' gradients in bf16 between micro-batches and until the update"};

// Acts on every program. `accumulates`: a step may have more than one micro-batch. Returns the number of gradients kept
// in bf16.
int64_t compress_gradients(Graph& graph, bool accumulates);

}  // namespace headroom
