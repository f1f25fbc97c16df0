// What Muon works on, and what its kernels keep of their node.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/attrs.h"

namespace headroom {

// a x + b x^3 + c x^5, which drives singular values towards 1 (Jordan et al. 2024).
constexpr float kMuonLinear = 3.4445f, kMuonCubic = -4.7750f, kMuonQuintic = 2.0315f;
constexpr float kMuonLeastNorm = 1e-7f;

// The inputs of muon; not every call has a copy.
struct MuonInputs {
  enum : int { weight, gradient, momentum_buffer, hyper, clip, copy };
};
// The results, each in the storage of its input; not every call has a copy.
struct MuonOutputs {
  enum : int { weight, momentum_buffer, copy };
};

struct MuonPlan {
  float momentum = 0;
  int64_t steps = 0;  // of the Newton-Schulz iteration
  bool nesterov = false;
  bool matches_adamw = false;  // the update's root mean square is about 0.2
  bool decay = false;
  uint64_t tensor = 0;  // the weight's part of the key for stochastic rounding

  explicit MuonPlan(const Attrs& attrs)
      : momentum(static_cast<float>(attrs.real("momentum"))),
        steps(attrs.integer("ns_steps")),
        nesterov(attrs.integer("nesterov") != 0),
        matches_adamw(attrs.integer("match_rms_adamw") != 0),
        decay(attrs.integer("decay") != 0),
        tensor(static_cast<uint64_t>(attrs.integer("tensor"))) {}
};

// A matrix, or a stack of matrices that are updated one by one.
struct MuonShape {
  int64_t matrices = 1;
  int64_t rows = 1;
  int64_t cols = 1;

  explicit MuonShape(std::span<const int64_t> dims) {
    for (size_t i = 0; i < dims.size(); ++i)
      (i + 1 == dims.size() ? cols : i + 2 == dims.size() ? rows : matrices) *= dims[i];
  }
  int64_t elements() const { return rows * cols; }
  bool is_tall() const { return rows > cols; }
  int64_t narrow() const { return std::min(rows, cols); }
  int64_t wide() const { return std::max(rows, cols); }

  // The factor on the learning rate.
  double rate_factor(const MuonPlan& plan) const {
    const double ratio = static_cast<double>(rows) / static_cast<double>(cols);
    return plan.matches_adamw ? 0.2 * std::sqrt(static_cast<double>(wide())) : std::sqrt(std::max(1.0, ratio));
  }
  // Floating-point operations of one update, in its products.
  double flops(const MuonPlan& plan) const {
    const double s = static_cast<double>(narrow()), l = static_cast<double>(wide());
    return static_cast<double>(matrices * plan.steps) * (4 * s * s * l + 2 * s * s * s);
  }
};

}  // namespace headroom
