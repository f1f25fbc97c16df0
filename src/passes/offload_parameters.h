// offload-parameters: the weights live on the host or disk; a layer's are on the device only while it runs.
//
// What: the matrices (bf16 copies of matrices too) of the treated layers move to the tier. Each run of nodes of one
//   block and one direction that reads them gets windows on the device (device_windows.h), in every program:
//     y = linear(x, W)      becomes      start W; ...; W1 = wait; y = linear(x, W1)
//   An update gets a window whose contents are copied back. Copies start `depth` runs ahead. The treated layers are
//   spread over the model, so that their copies run at the same time as the kernels of the others.
// Legal when: always; bytes are copied, never changed. Vectors stay: a copy costs more than they take.
// Placed here because: last. After recompute, whose clones read weights; after the other offloads, whose copies it
//   leaves alone.
// Saves: the treated weights except their windows: 2 depth + 1 layers of them, or depth + 1 if nothing is written back.
//   Costs: each matrix crosses the link once per direction of every micro-batch, and twice for its update.
// Manuals: M3 (T13, T14); ZeRO-3 offload_param (T15), ZeRO-Inference (T37).
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kOffloadParameters{"offload-parameters", PassStage::schedule, TechniqueKind::exact,
                                             "keep the weights on the host or disk and copy each layer's when it runs"};

// Every matrix, including those outside layers (embeddings, the head).
inline constexpr int64_t kEveryLayer = INT64_MAX;

// Moves to a tier the matrices of `layers` layers that no node outside layers reads; with kEveryLayer every matrix.
void offload_parameters(Graph& graph, Tier to, int64_t layers, int64_t depth);

}  // namespace headroom
