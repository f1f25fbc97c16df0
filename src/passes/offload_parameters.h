// offload-parameters: the weights live on the host or on disk; a layer has its own on the device while it runs.
//
// What: the matrices (bf16 copies of matrices too) of the treated layers move to the tier. Each run of nodes of one
//   block and one direction that reads them gets windows on the device (device_windows.h), in every program:
//     y = linear(x, W)      becomes      start W; ...; W1 = wait; y = linear(x, W1)
//   and an update a window whose contents are copied back. Copies start `depth` runs ahead. The treated layers are
//   spread over the model, so that the copies of one lie beside the kernels of those that stay.
// Legal when: always; bytes are copied, never changed. Vectors stay: a copy costs more than they take.
// Placed here because: last. After recompute, whose clones read weights; after the other offloads, whose copies it
//   leaves alone.
// Saves: the treated weights but for their windows: 2 depth + 1 layers of them, depth + 1 where nothing is written
//   back. Costs: each matrix crosses the link for each direction of every micro-batch, and twice for its update.
// Manuals: M3 (T13, T14); ZeRO-3 offload_param (T15), ZeRO-Inference (T37).
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kOffloadParameters{"offload-parameters", PassStage::schedule, TechniqueKind::exact,
                                             "keep the weights on the host or disk and copy each layer's when it runs"};

// Every matrix, those outside layers (embeddings, the head) too.
inline constexpr int64_t kEveryLayer = INT64_MAX;

// Moves the matrices of so many layers to a tier: those that no node outside layers reads.
void offload_parameters(Graph& graph, Tier to, int64_t layers, int64_t depth);

}  // namespace headroom
