// Activations and their derivatives in double precision, for reference kernels.
#pragma once

#include <cmath>
#include <numbers>

namespace headroom {

struct ActivationAt {
  double value = 0;
  double slope = 0;
};

inline ActivationAt gelu_exact(double x) {
  const double integral = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  const double density = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return {x * integral, integral + x * density};
}

inline ActivationAt gelu_by_tanh(double x) {
  const double root = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(root * (x + 0.044715 * x * x * x));
  return {0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x)};
}

inline ActivationAt silu(double x) {
  const double s = 1 / (1 + std::exp(-x));
  return {x * s, s * (1 + x * (1 - s))};
}

}  // namespace headroom
