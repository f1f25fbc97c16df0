// shard (fully sharded data parallelism; Rajbhandari et al. 2020, ZeRO stage 3): every process keeps one slice of each
// weight matrix, of its gradient and of its optimizer states; whole matrices exist only while a block uses them.
//
// What: an assembled training graph becomes the graph of one of `parts` processes, each with its own rows of the batch.
//     y = linear(x, W)                    W' = wait(all_gather_start(W/0:2)); y = linear(x, W')
//     acc' = linear_dw(x, dy, acc)        t = linear_dw(x, dy, zero_fill(allocate))
//                                         acc'/0:2 = accumulate(wait(reduce_scatter_start(t)), acc/0:2)
//   - A matrix is gathered once for each run of nodes of one block and one direction that reads it, and dies there.
//   - A cast of a slice stays a slice, and what a product would round is cast first: the narrow form is gathered.
//     Updates work on slices: the optimizer is elementwise.
//   - Vectors stay whole in every process; the sums of their gradients over the micro-batches are all-reduced.
//   - The squared norm of the slices is all-reduced once, then that of the vectors is added. Losses are all-reduced.
// Legal when: matrices are read by ordinary nodes and updated in place by optimizer nodes; gradients are accumulated by
//   nodes with attribute "accumulate"; every process runs the same number of micro-batches; the loss scale is that of
//   the global batch, so that sums over processes are right.
// Placed here because: last. After autodiff, which must see whole matrices; after recompute, whose clones read matrices
//   and must not run collectives twice; after fused-optimizer, which moves updates that then work on slices. Liveness,
//   offset assignment, emission and the executor treat collectives as ordinary nodes.
// Saves: (parts - 1)/parts of weights, gradients and optimizer states. Costs: per micro-batch and matrix two gathers
//   and one reduce-scatter of its bytes, and one pass over each whole gradient to clear it.
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kShard{"shard", PassStage::schedule, TechniqueKind::reassociating,
                                 "split weights, gradients and optimizer states over processes"};

// Rewrites every program of the graph. `parts`: the number of processes; 1 leaves the graph unchanged. Throws
// InternalError if the graph is not of the form above.
void shard(Graph& graph, int32_t parts);

}  // namespace headroom
