// sequence-chunks (tiled MLP, as ALST's TiledMLP; Bekman et al. 2025): compute the token-wise parts of a layer for one
// part of the sequence after another.
//
// What: in the bodies of the loops over micro-batches, a run of nodes of one block that act on token rows one by one
//   (Op::by_rows) becomes `chunks` copies over parts of the sequence, forward and backward. Example, two parts:
//     u = linear(h, up); y = linear(gelu(u), down)
//   becomes
//     u0 = linear(take_rows(h, 0/2), up); Y = put_rows(linear(gelu(u0), down), 0/2)
//     u1 = linear(take_rows(h, 1/2), up); y = put_rows(linear(gelu(u1), down), 1/2 into Y)
//   Values that only the run reads have the size of a part. Values that others read are assembled in place, in the
//   storage of an input of the run that dies there if there is one. Sums over rows (gradients of weights, biases,
//   norms) are added up in their accumulators. A cheap value that is recomputed for several runs of a block is computed
//   in each of them. The last norm, the loss and their gradients form a run outside the blocks, for which the loss is
//   given the label that each row predicts. A run is not cut if its parts would hold as much.
// Legal when: a row of the result depends only on the same row and on whole weights. Attention, rotary embeddings,
//   dropout and routing of experts depend on other rows or on a row's position, and end a run.
// Reassociating: a sum over rows is split at the parts. Rows of the forward pass are what the same kernels give for
//   fewer rows.
// Placed here because: after recompute, whose clones are in the backward part and join its runs; before
//   fused-optimizer, which needs the last node that adds to a gradient, and before the offload passes, whose windows
//   span the parts.
// Saves: all but one part of the values inside a run, mostly the MLP's. Costs: a copy of what enters and leaves a run;
//   smaller products; all gradients of a run's weights are alive together.
// Manuals: M0 (T03).
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kSequenceChunks{"sequence-chunks", PassStage::schedule, TechniqueKind::reassociating,
                                          "compute norms, projections and MLPs for parts of the sequence"};

// The most parts into which sequences of at most `seq_length` tokens can be cut: so many that no part is empty in
// length buckets either (which have at least max(16, seq_length / 8) tokens, passes/length_buckets.h).
int64_t most_sequence_chunks(int64_t seq_length);

// Returns the number of runs that were cut; 0 with fewer than two chunks. Throws InternalError for more than
// most_sequence_chunks() of the symbol "seq".
int chunk_sequences(Graph& graph, int64_t chunks);

}  // namespace headroom
