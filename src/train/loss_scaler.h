// The loss scale of fp16: the gradient of the loss is multiplied by it, so that gradients in f16 do not vanish, and the
// update divides by it. Dynamic scales follow torch.amp.GradScaler or DeepSpeed's DynamicLossScaler: a step whose
// gradients are not finite is skipped and the scale divided by two; after a window of good steps it is doubled.
#pragma once

#include <cstdint>
#include <string>

namespace headroom {

// --fp16-*; a number below 0 means the preset's.
struct LossScaleOptions {
  std::string preset = "torch";  // or deepspeed
  double loss_scale = 0;         // a constant scale; 0: dynamic
  int64_t initial_scale_power = -1;
  int64_t loss_scale_window = -1;
  int64_t hysteresis = -1;
  double min_loss_scale = -1;
};

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

// "torch", and the values that differ from the preset: "torch,initial-scale-power=8".
std::string text_of(const LossScaleOptions& options);

// Checks ranges and words. Throws Error(usage) naming option, value and remedy; also if they are given for a precision
// without a scale.
void check_options(const LossScaleOptions& options, bool scales);

}  // namespace headroom
