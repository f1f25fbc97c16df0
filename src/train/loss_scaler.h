// The loss scale of fp16: the gradient of the loss is multiplied by it, so that gradients in f16 do not vanish, and the
// update divides by it. Dynamic scales follow torch.amp.GradScaler or DeepSpeed's DynamicLossScaler: a step whose
// gradients are not finite is skipped and the scale divided by two; after a window of good steps it is doubled.
#pragma once

#include <cstdint>

#include "options/loss_scale_options.h"

namespace headroom {

// The state of a scale; saved in checkpoints.
struct LossScaleState {
  double scale = 1;
  int64_t good_steps = 0;  // since the scale last changed, or a step was skipped
  int64_t patience = 1;    // overflows until the scale is divided
  int64_t skipped = 0;     // steps skipped so far

  bool operator==(const LossScaleState&) const = default;
};

class LossScaler {
 public:
  // For a run without a scale: always 1, and no step is skipped.
  LossScaler() = default;
  explicit LossScaler(const LossScaleOptions& options);

  bool scales() const { return scales_; }
  LossScaleState initial() const;
  // Call after a step, with whether its gradients were finite. False if the scale must be divided but is at its
  // minimum.
  bool update(bool finite, LossScaleState& state) const;

 private:
  bool scales_ = false, dynamic_ = false;
  double initial_ = 1, least_ = 1;
  int64_t window_ = 0, hysteresis_ = 1;
};

}  // namespace headroom
