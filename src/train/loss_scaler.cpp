#include "train/loss_scaler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headroom {
namespace {

constexpr double kFactor = 2;

struct Preset {
  int64_t initial_scale_power, loss_scale_window, hysteresis;
  double min_loss_scale;
};
// torch has no minimum scale: below 2^-24 an overflowing gradient has no meaning in f16.
constexpr Preset kTorch{16, 2000, 1, 0x1p-24}, kDeepSpeed{16, 1000, 2, 1};

template <typename Number>
Number given_or(Number given, Number otherwise) {
  return given < 0 ? otherwise : given;
}

}  // namespace

LossScaler::LossScaler(const LossScaleOptions& options) : scales_(true), dynamic_(options.loss_scale == 0) {
  const Preset& preset = options.preset == "deepspeed" ? kDeepSpeed : kTorch;
  initial_ = dynamic_
                 ? std::exp2(static_cast<double>(given_or(options.initial_scale_power, preset.initial_scale_power)))
                 : options.loss_scale;
  window_ = given_or(options.loss_scale_window, preset.loss_scale_window);
  hysteresis_ = given_or(options.hysteresis, preset.hysteresis);
  least_ = given_or(options.min_loss_scale, preset.min_loss_scale);
}

LossScaleState LossScaler::initial() const { return {initial_, 0, hysteresis_, 0}; }

bool LossScaler::update(bool finite, LossScaleState& state) const {
  if (!scales_) return true;
  if (!finite) {
    ++state.skipped;
    state.good_steps = 0;
    if (!dynamic_) return true;
    if (state.patience > 1) {
      --state.patience;
      return true;
    }
    if (state.scale <= least_) return false;
    state.scale = std::max(state.scale / kFactor, least_);
    return true;
  }
  if (dynamic_ && ++state.good_steps >= window_) {
    state.good_steps = 0;
    state.patience = hysteresis_;
    if (state.scale * kFactor <= static_cast<double>(std::numeric_limits<float>::max())) state.scale *= kFactor;
  }
  return true;
}

}  // namespace headroom
