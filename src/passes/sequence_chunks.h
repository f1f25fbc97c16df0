// sequence-chunks (tiled MLP, as ALST's TiledMLP; Bekman et al. 2025): compute the token-wise parts of a layer for one
// part of the sequence after the other.
//
// What: in the bodies of the loops over micro-batches, a run of nodes of one block that act on token rows one by one
//   (Op::by_rows) becomes `chunks` copies over parts of the sequence, forward and backward. Example, two parts:
//     u = linear(h, up); y = linear(gelu(u), down)
//   becomes
//     u0 = linear(take_rows(h, 0/2), up); Y = put_rows(linear(gelu(u0), down), 0/2)
//     u1 = linear(take_rows(h, 1/2), up); y = put_rows(linear(gelu(u1), down), 1/2 into Y)
//   What only the run reads has the size of a part. What others read is assembled in place, in the storage of an input
//   of the run that dies there where there is one. Sums over rows (gradients of weights, biases, norms) are added up in
//   their accumulators. A cheap value that was computed again for several runs of a block is computed in each of them.
//   The last norm, the loss and their gradients are a run outside of the blocks, for which the loss is given the label
//   that each row predicts. A run is left as it is where its parts would hold as much.
// Legal when: rows follow from the same rows and from whole weights. Attention, rotary embeddings, dropout and routing
//   of experts depend on other rows or on the place of a row, and end a run.
// Reassociating: a sum over rows has an end per part. Rows of the forward pass are the numbers of the same kernels with
//   fewer rows.
// Placed here because: after recompute, whose clones stand in the backward part and join its runs; before
//   fused-optimizer, which needs the last node that adds to a gradient, and before the offload passes, whose windows
//   span the parts.
// Saves: all but a part of the values inside a run: of the MLP's, mostly. Costs: a copy of what enters and leaves a
//   run; smaller products; all gradients of a run's weights are alive together.
// Manuals: M0 (T03).
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kSequenceChunks{"sequence-chunks", PassStage::schedule, TechniqueKind::reassociating,
                                          "compute norms, projections and MLPs for parts of the sequence"};

// The most parts that sequences of at most `seq_length` tokens are cut into, so that in length buckets too (from
// max(16, seq_length / 8) tokens on, passes/length_buckets.h) no part is empty.
int64_t most_sequence_chunks(int64_t seq_length);

// Returns the number of runs that were cut; 0 with fewer than two chunks. Throws InternalError for more than
// most_sequence_chunks() of the symbol "seq".
int chunk_sequences(Graph& graph, int64_t chunks);

}  // namespace headroom
