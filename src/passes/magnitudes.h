// Weight-decomposed adapters (DoRA; Liu et al. 2024, equation 5): a part of technique "lora".
//
// What: a targeted product y = x W^T + bias + residual with a low-rank path becomes
//     z = linear(x, W) + linear(s, B); n = row_lengths(W, A, B); y' = magnitude(z, m, n, bias, residual)
//   where n[o] = |W + factor B A| of row o and m, the magnitude, is trained: y' = z m / n + bias + residual. To the
//   gradient n is a constant (section 4.3), as in PEFT.
// The lengths: squares of W + factor B A, added row by row. The expansion |w|^2 + 2 f w.(BA) + f^2 |BA|^2 takes the
//   same products with A, saves nothing, since nothing is stored row by row either, and cancels where a row and its
//   update nearly do. In training they are computed in each forward pass and kept until the backward pass. Where
//   adapters do not change, program "load" computes them once.
// Costs: f32 vectors per target: magnitude, gradient, states, and lengths; a product of W's size times the rank; z is
//   kept for the magnitude's gradient.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace headroom {

// Whether the lengths belong to each forward pass, or are values that program "load" fills.
enum class RowLengthsIn { forward, load };

// The program that gives magnitudes the lengths of their rows: a run that begins with fresh adapters runs it once.
inline constexpr std::string_view kStartMagnitudes = "start_magnitudes";

// The magnitude's name, as PEFT stores it: "base_model.model." + module + ".lora_magnitude_vector".
std::string magnitude_name(std::string_view weight);
bool is_magnitude_name(std::string_view name);
// The name of the magnitude beside an adapter's A or B: "m.lora_A.weight" -> "m.lora_magnitude_vector".
std::string magnitude_beside(std::string_view matrix);

// A weight [out, in] with its adapter.
struct AdaptedWeight {
  ValueId weight = kNone, a = kNone, b = kNone;
  double factor = 1;
};

// The lengths as a persistent value that program "load" computes; the same one for every call with this weight.
ValueId lengths_from_load(Graph& graph, const AdaptedWeight& adapted);

// Adds the program kStartMagnitudes for the magnitudes that a region reads.
void start_magnitudes(Graph& graph, RegionId region);

// Throws Error(usage) for what DoRA is not built for: a matrix stored [in, out], and experts and routers.
[[noreturn]] void refuse_magnitude(const std::string& module, std::string_view why, std::string_view remedy);

}  // namespace headroom
