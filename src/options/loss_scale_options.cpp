#include "options/loss_scale_options.h"

#include "base/error.h"
#include "options/option_checks.h"

namespace headroom {

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
