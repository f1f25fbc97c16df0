// qat: quantisation-aware training. What the layers' products read is rounded as it will be once the model is
// quantised.
//
// What: the matrices of the model's blocks (those that quantize-weights takes) are rounded to a grid of 4 or 8 bits in
//   groups of 32 features, and with int8-int4 the activations that enter them to 8 bits per token:
//     y = linear(x, w)      becomes      c, g = quantize_tokens(x); v = fake_quantize_weight(w)
//                                        y = linear(dequantize_tokens(c, g), v)
//   Layers of one input share its codes. The weights that are trained stay as they are; a gradient passes the rounding
//   unchanged, and the clamp only strictly between its bounds. Matrices that are codes already stay so, and their
//   layers' activations are rounded: that is how a converted model runs.
// Legal when: named. Lossy. Not with adapters, nor where the matrices are stored [in, out], whose groups would lie
//   across rows.
// Placed here because: after quantize-weights, which says what is codes; before the precision, whose casts stand behind
//   the rounding; and before autodiff, which derives the gradient.
// Saves: of activations, where they are rounded: 1 byte per feature and 8 per token are kept for the backward pass in
//   place of 4 (2 in bf16), and the products' operands are decoded from them. Costs: a rounded copy of each matrix
//   while a product reads it, forward and backward; a pass over weight and gradient.
// Sources: torchao's QATConfig; Jacob et al. 2018.
// Manuals: M4 (T24).
#pragma once

#include <cstdint>
#include <string_view>

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kQat{"qat", PassStage::model, TechniqueKind::lossy,
                               "train the weights for their quantised form: int8-int4, int4 or int8"};

// Rounds so in the region; `kind` is one of the three above. Returns the number of layers. Throws Error(usage) naming
// the weight that has no whole groups.
int64_t fake_quantize(Graph& graph, RegionId region, std::string_view kind);

}  // namespace headroom
