// The options of fp16's loss scale (train/loss_scaler.h).
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

  bool operator==(const LossScaleOptions&) const = default;
};

// "torch", and the values that differ from the preset: "torch,initial-scale-power=8".
std::string text_of(const LossScaleOptions& options);

// Checks ranges and words. Throws Error(usage) naming option, value and remedy; also if they are given for a precision
// without a scale.
void check_options(const LossScaleOptions& options, bool scales);

}  // namespace headroom
