// quantize-activations: layers over a base in whole-number codes multiply integers.
//
// What: sets an attribute of the products whose matrix is stored as int8 or int4 codes (quantize-weights, a quantised
//   checkpoint):
//     y = linear(x, w)   becomes   y = linear(x, w) {multiply = int8-blocks}
//   Their kernels turn every 32 elements of x into 8-bit codes with a scale, multiply them with the weight's codes as
//   they are stored, and sum in integers (ops/linear/int8_blocks.h). Nothing is decoded.
// Legal when: named, for a model that is not trained, on a CPU. Lossy. A matrix takes part if its groups are multiples
//   of 32 that divide a row, or a whole row of such a length; not nf4 and fp4, whose values are not whole numbers.
// Placed here because: after quantize-weights, which decides what is stored as codes.
// Saves: the time to decode, and half of the arithmetic. No bytes. Costs: scratch, 2 bytes for each element of x.
// Sources: Dettmers et al. 2022, "LLM.int8()", section 2.1; Frantar et al. 2022, "GPTQ". Activations in groups, as in
//   ZeroQuant (Yao et al. 2022), section 3.
// Manuals: M4 (T23).
#pragma once

#include <cstdint>

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kQuantizeActivations{"quantize-activations", PassStage::model, TechniqueKind::lossy,
                                               "multiply int8 or int4 weights with activations in 8 bits: int8"};

// Acts on a region of a model that is not trained. Returns how many layers take part.
int64_t quantize_activations(Graph& graph, RegionId region);

}  // namespace headroom
