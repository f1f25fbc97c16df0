// Numbers as 8-bit codes: x is about code * scale, where the scale is a row's largest magnitude / 127. A product of
// codes is an integer, so its sums are exact in any order.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace headroom {

// Magnitudes below this count as zero: their scale would not be a normal number.
constexpr float kInt8Least = 0x1p-100f;

struct Int8Scale {
  float scale = 0;
  float inverse = 0;  // 0: all codes are 0
};

// The bits of |x|, which are ordered as |x| is; NaN is above infinity.
inline int32_t magnitude_bits(float x) { return std::bit_cast<int32_t>(x) & 0x7fffffff; }

// From the largest magnitude_bits() of a row. If an element is not finite, neither is the scale: products of the row
// become NaN.
inline Int8Scale int8_scale(int32_t largest_bits) {
  const float largest = std::bit_cast<float>(largest_bits);
  if (!std::isfinite(largest)) return {largest, 0};
  if (largest < kInt8Least) return {};
  const float scale = largest / 127;
  return {scale, 1 / scale};
}

// From -127 to 127, rounded to nearest even.
inline int32_t int8_code(float x, float inverse) {
  return inverse > 0 ? static_cast<int32_t>(std::nearbyint(x * inverse)) : 0;
}

}  // namespace headroom
