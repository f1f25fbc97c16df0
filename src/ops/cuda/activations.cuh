// Activations and their slopes in f32: SiLU, GELU exact and by tanh. No branch depends on the argument.
#pragma once

#include "ops/cuda/device_language.cuh"

namespace headroom::cuda {

struct ValueAndSlope {
  float value;
  float slope;
};

// 1 / (1 + exp(-x)); 0 and 1 far from zero.
HR_DEVICE float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

struct Silu {
  static HR_DEVICE float value(float x) { return x * sigmoid(x); }
  static HR_DEVICE ValueAndSlope both(float x) {
    const float s = sigmoid(x);
    return {x * s, s * (1.0f + x * (1.0f - s))};
  }
};

// x Phi(x); the slope is Phi(x) + x phi(x).
struct GeluExact {
  static HR_DEVICE float integral(float x) { return 0.5f * erfcf(x * -0.70710678f); }
  static HR_DEVICE float value(float x) { return x * integral(x); }
  static HR_DEVICE ValueAndSlope both(float x) {
    const float below = integral(x), density = 0.39894228f * expf(-0.5f * x * x);
    return {x * below, below + x * density};
  }
};

// x (1 + tanh(u)) / 2 = x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluByTanh {
  static HR_DEVICE float sigmoid_of_twice_u(float x) { return sigmoid(1.5957691216f * x * (1.0f + 0.044715f * x * x)); }
  static HR_DEVICE float value(float x) { return x * sigmoid_of_twice_u(x); }
  static HR_DEVICE ValueAndSlope both(float x) {
    const float s = sigmoid_of_twice_u(x), rise = 1.5957691216f * (1.0f + 0.134145f * x * x);
    // Beyond 10 the product is below 1e-30, and x * rise may overflow.
    const float steep = fabsf(x) > 10.0f ? 0.0f : x * rise * s * (1.0f - s);
    return {x * s, s + steep};
  }
};

}  // namespace headroom::cuda
