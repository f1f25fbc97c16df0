// 8-bit floating-point elements: e4m3 (sign, 4 bits of exponent, 3 of mantissa) and e5m2, as defined by Micikevicius et
// al. ("FP8 formats for deep learning", 2022).
#pragma once

#include <cstdint>

namespace headroom {

enum class Fp8Format : uint8_t { none, e4m3, e5m2 };

}  // namespace headroom
