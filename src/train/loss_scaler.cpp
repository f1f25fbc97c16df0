#include "train/loss_scaler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "train/option_checks.h"

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

std::string text_of(const LossScaleOptions& o) {
  std::string text = o.preset;
  const auto add = [&](std::string_view name, auto value, bool given) {
    if (given) text += fmt::format(",{}={}", name, value);
  };
  add("loss-scale", o.loss_scale, o.loss_scale != 0);
  add("initial-scale-power", o.initial_scale_power, o.initial_scale_power >= 0);
  add("loss-scale-window", o.loss_scale_window, o.loss_scale_window >= 0);
  add("hysteresis", o.hysteresis, o.hysteresis >= 0);
  add("min-loss-scale", o.min_loss_scale, o.min_loss_scale >= 0);
  return text;
}

void check_options(const LossScaleOptions& o, bool scales) {
  using namespace option_checks;
  one_of("fp16-preset", o.preset, {"torch", "deepspeed"});
  const LossScaleOptions unset;
  const char* given = o.preset != unset.preset                             ? "fp16-preset"
                      : o.loss_scale != unset.loss_scale                   ? "fp16-loss-scale"
                      : o.initial_scale_power != unset.initial_scale_power ? "fp16-initial-scale-power"
                      : o.loss_scale_window != unset.loss_scale_window     ? "fp16-loss-scale-window"
                      : o.hysteresis != unset.hysteresis                   ? "fp16-hysteresis"
                      : o.min_loss_scale != unset.min_loss_scale           ? "fp16-min-loss-scale"
                                                                           : nullptr;
  if (given && !scales)
    throw Error(ErrorKind::usage, fmt::format("--{} without --precision 16-mixed or 16-true: no loss is scaled", given),
                "add --precision 16-mixed, or leave it out");
  if (o.loss_scale != 0) real_in("fp16-loss-scale", o.loss_scale, 0x1p-24, 0x1p32);
  if (o.initial_scale_power != -1)
    real_in("fp16-initial-scale-power", static_cast<double>(o.initial_scale_power), 0, 32);
  if (o.loss_scale_window != -1) at_least("fp16-loss-scale-window", o.loss_scale_window, 1);
  if (o.hysteresis != -1) at_least("fp16-hysteresis", o.hysteresis, 1);
  if (o.min_loss_scale != -1) real_in("fp16-min-loss-scale", o.min_loss_scale, 0x1p-24, 0x1p32);
}

}  // namespace headroom
