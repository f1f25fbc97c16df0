// The inverse frequencies of a rotary table.
#pragma once

#include <vector>

#include "ir/attrs.h"

namespace headroom {

// head_dim/2 values in f32 arithmetic, operation for operation as HF transformers computes them: 1 / theta^(2i/d), then
// scaling "linear" (divided by factor) or "llama3" (Llama 3.1: long wavelengths divided by factor, short ones kept,
// those between interpolated) or "longrope" (theta^(2i/d) times the pair's factor). `attrs` are those of rope_table.
std::vector<float> inverse_frequencies(const Attrs& attrs);

}  // namespace headroom
