// quantize-training: the layers' matrices are trained as 8-bit codes with a scale per row; there is no wider copy.
//
// What: a matrix that a linear layer of the model's blocks multiplies by (those that quantize-weights takes) is stored
//   as codes, as by quantize-weights=int8, and trained: products decode it tile by tile, gradients and optimizer
//   states stay in fp32, and its update decodes a row, updates it in fp32 and rounds it stochastically to the codes
//   of its new scale (ops/update, ops/stream/row_codes.h). The draws are keyed by seed, step, weight, row and column.
// Legal when: named, with an optimizer that updates element by element and keeps states in fp32. Lossy. Not with
//   adapters, whose base is not trained.
// Placed here because: before autodiff, whose accumulators are fp32 whatever the weight is, and before the precision,
//   whose casts only apply to values that are not codes.
// The other setting, int8-mixed, leaves storage alone and multiplies in 8 bits (passes/int8_products.h).
// Saves: 3 of a weight's 4 bytes: with AdamW, a trained weight takes 13 bytes instead of 16. Costs: decoding, once per
//   product, and a row in fp32 for each thread in the update.
// Sources: torchao's int8_weight_only_quantized_training.
// Manuals: M4 (T23).
#pragma once

#include <cstdint>
#include <string_view>

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kQuantizeTraining{
    "quantize-training", PassStage::model, TechniqueKind::lossy,
    "train the layers' matrices as 8-bit codes (int8), rounded stochastically, no fp32 copy of them; or only "
    "multiply in 8 bits (int8-mixed)"};

// Stores the matrices as codes. Returns how many there are. Throws Error(usage) naming a weight whose rows do not fill
// whole 32-bit words, which is how checkpoints store codes.
int64_t quantize_training(Graph& graph, RegionId region);

}  // namespace headroom
