// The scalars of a step by name, as the host fills them (layout: ops/step_scalars.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "ops/step_scalars.h"

namespace headroom {

class StepScalars {
 public:
  // `own`: the names of the optimizer's own scalars; they outlive this.
  explicit StepScalars(std::span<const std::string_view> own);

  // "learning_rate", "weight_decay", "loss_scale", "max_grad_norm", "unscale", "drawn_labels", or one of the
  // optimizer's own; rounded to f32. Throws InternalError for another name.
  void set(std::string_view name, double value);
  // The key of the step's random draws.
  void set_key(uint64_t seed, uint32_t step);

  std::span<const float> values() const { return values_; }

 private:
  std::span<const std::string_view> own_;
  std::array<float, kHyperCount> values_{};
};

}  // namespace headroom
