// qat: quantisation-aware training. The operands of the layers' products are rounded as they will be in the quantised
// model.
//
// What: the matrices of the model's blocks (those that quantize-weights takes) are rounded to a grid of 4 or 8 bits in
//   groups of 32 features, and with int8-int4 the activations that enter them to 8 bits per token:
//     y = linear(x, w)      becomes      c, g = quantize_tokens(x); v = fake_quantize_weight(w)
//                                        y = linear(dequantize_tokens(c, g), v)
//   Layers with the same input share its codes. The trained weights themselves are not rounded; a gradient passes the
//   rounding unchanged, and the clamp only strictly between its bounds. Matrices that are already codes stay so, and
//   only their layers' activations are rounded: that is how a converted model runs.
// Legal when: named. Lossy. Not with adapters, nor with matrices stored [in, out], whose groups would lie across rows.
// Placed here because: after quantize-weights, which decides what is stored as codes; before the precision, whose casts
//   come after the rounding; and before autodiff, which derives the gradient.
// Saves: for rounded activations, 1 byte per feature and 8 per token are kept for the backward pass instead of 4 per
//   feature (2 in bf16); the products' operands are decoded from them. Costs: a rounded copy of each matrix while a
//   product reads it, forward and backward; a pass over weight and gradient.
// Sources: torchao's QATConfig; Jacob et al. 2018.
// Manuals: M4 (T24).
#pragma once

#include <cstdint>
#include <string_view>

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kQat{"qat", PassStage::model, TechniqueKind::lossy,
                               "train the weights for their quantised form: int8-int4, int4 or int8"};

// Rounds the operands in the region; `kind`: int8-int4, int4 or int8. Returns the number of layers. Throws Error(usage)
// naming a weight whose rows are not whole groups.
int64_t fake_quantize(Graph& graph, RegionId region, std::string_view kind);

}  // namespace headroom
