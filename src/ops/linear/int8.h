// Products of 8-bit codes: attribute "multiply" "int8" of linear, linear_dx and linear_dw. Both operands become codes
// from -127 to 127, with a scale for every row of the one and every column of the other, along the dimension that is
// summed (ops/cpu/int8_codes.h). The sums are integers: every kernel gives the same bits.
#pragma once

#include <string_view>

namespace headroom {

inline constexpr std::string_view kMultiplyInt8 = "int8";
// Attributes of linear: "multiply" of the products of its gradients.
inline constexpr std::string_view kMultiplyDx = "multiply_dx", kMultiplyDw = "multiply_dw";

}  // namespace headroom
