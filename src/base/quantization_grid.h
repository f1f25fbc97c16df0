// The grids of quantization-aware training, as in torchao: symmetric codes for a group of weights, asymmetric codes for
// a token's activations. Every line is one correctly rounded fp32 operation, so training, evaluation and the converted
// checkpoint have the same codes.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace headroom {

// Weights of a row that share a scale.
inline constexpr int kQatGroup = 32;

// The smallest and the largest code of 4 or 8 bits.
struct CodeRange {
  float low = -128;
  float high = 127;
};
constexpr CodeRange code_range(int bits) { return bits == 4 ? CodeRange{-8, 7} : CodeRange{}; }

// The scale of weights whose largest magnitude is `most`.
inline float weight_scale(float most, int bits) {
  const CodeRange range = code_range(bits);
  return std::max(most / ((range.high - range.low) / 2), std::numeric_limits<float>::min());
}

// A weight in steps from 0, unclamped, with `inverse` = 1 / scale; clamped_code() makes it a code.
inline float weight_steps(float weight, float inverse) { return std::nearbyint(weight * inverse); }
inline float clamped_code(float steps, CodeRange range) { return std::min(std::max(range.low, steps), range.high); }

// The 8-bit grid of a token with features between `least` <= 0 and `most` >= 0.
struct TokenGrid {
  float scale = 1;
  float zero = 0;  // the code of 0
};
inline TokenGrid token_grid(float least, float most) {
  const CodeRange range = code_range(8);
  TokenGrid grid;
  grid.scale = std::max((most - least) / (range.high - range.low), std::numeric_limits<float>::min());
  grid.zero = clamped_code(range.low - std::nearbyint(least / grid.scale), range);
  return grid;
}
// The code of a feature, with `inverse` = 1 / scale.
inline float token_code(float x, float inverse, float zero) {
  return clamped_code(std::nearbyint(x * inverse) + zero, code_range(8));
}

}  // namespace headroom
