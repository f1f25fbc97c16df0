// The loss scale of fp16: the gradient of the loss is multiplied by it, so that gradients in f16 do not vanish, and the
// update takes it back. Dynamic scales follow torch.amp.GradScaler or DeepSpeed's DynamicLossScaler: a step whose
// gradients are not finite is left out and the scale divided by two; after a window of good steps it is doubled.
#pragma once

#include <cstdint>
#include <string>

namespace headroom {

// --fp16-*; a number below 0 is the preset's.
struct LossScaleOptions {
  std::string preset = "torch";  // or deepspeed
  double loss_scale = 0;         // a scale that stays; 0: dynamic
  int64_t initial_scale_power = -1;
  int64_t loss_scale_window = -1;
  int64_t hysteresis = -1;
  double min_loss_scale = -1;
};

// Where a scale stands; saved in checkpoints.
struct LossScaleState {
  double scale = 1;
  int64_t good_steps = 0;  // since the scale last changed, or a step was left out
  int64_t patience = 1;    // overflows until the scale is divided
  int64_t skipped = 0;     // steps left out so far

  bool operator==(const LossScaleState&) const = default;
};

class LossScaler {
 public:
  // Of a run without a scale: always 1, and no step is left out by it.
  LossScaler() = default;
  explicit LossScaler(const LossScaleOptions& options);

  bool scales() const { return scales_; }
  LossScaleState initial() const;
  // After a step whose gradients were finite, or were not. False where the scale had to be divided and is at its least.
  bool update(bool finite, LossScaleState& state) const;

 private:
  bool scales_ = false, dynamic_ = false;
  double initial_ = 1, least_ = 1;
  int64_t window_ = 0, hysteresis_ = 1;
};

// "torch", and what is given beside the preset: "torch,initial-scale-power=8".
std::string text_of(const LossScaleOptions& options);

// Checks ranges and words. Throws Error(usage) naming option, value and remedy; also where they are given to a
// precision that has no scale.
void check_options(const LossScaleOptions& options, bool scales);

}  // namespace headroom
