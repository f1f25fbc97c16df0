// Products of bf16 operands in fp8: attribute "multiply" "fp8" of linear, linear_dx and linear_dw. Activations and
// weights are rounded to e4m3, gradients to e5m2, each tensor scaled by a power of two.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace headroom {

inline constexpr std::string_view kMultiplyFp8 = "fp8";

// Whether a product of these sizes is multiplied in fp8 on a device that can: the library needs multiples of 16 bytes.
inline bool fits_fp8(int64_t rows, int64_t outs, int64_t ins) {
  return std::min({rows, outs, ins}) > 0 && rows % 16 == 0 && outs % 16 == 0 && ins % 16 == 0;
}

}  // namespace headroom
