// f32 numbers as sums of bf16 numbers, kept in f32: the operands of Multiply::bf16 and bf16x3 in kernels without bf16
// tiles.
#pragma once

#include <cmath>

#include "base/bfloat16.h"

namespace headroom {

inline float rounded_to_bf16(float number) { return static_cast<float>(static_cast<bfloat16>(number)); }

// high + low has about 16 bits of a number and is exact in f32. A number that is not finite, or that bf16 rounds to
// infinity, has one part.
struct Bf16Parts {
  float high = 0;
  float low = 0;
};

inline Bf16Parts bf16_parts(float number) {
  const float high = rounded_to_bf16(number);
  return {high, std::isfinite(high) ? rounded_to_bf16(number - high) : 0.0f};
}

// The three largest of the four products of parts, as two: a.high times both parts of b, and a.low times b.high.
inline float add_three_products(float sum, Bf16Parts a, Bf16Parts b) {
  sum = std::fma(a.high, b.high + b.low, sum);
  return std::isfinite(b.high) ? std::fma(a.low, b.high, sum) : sum;
}

}  // namespace headroom
