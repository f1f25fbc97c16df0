// Adafactor (Shazeer & Stern 2018), as transformers' Adafactor computes it, with the settings that its Trainer gives
// it: the learning rate is --learning-rate unless relative_step is asked for.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "optim/registry.h"

namespace headroom {
namespace {

class AdafactorMethod final : public Optimizer {
 public:
  std::string_view name() const override { return "adafactor"; }

  std::span<const OptimizerOption> options() const override {
    static constexpr OptimizerOption kOptions[] = {
        {"beta1", "decay of the first moment, 0 keeps none", 0, 0, 1},
        {"decay_rate", "exponent of the step number in the decay of squared gradients", -0.8, -1, 0},
        {"clip_threshold", "largest root mean square of an update", 1, 1e-6, 1e6},
        {"eps1", "added to squared gradients", 1e-30, 0, 1},
        {"eps2", "smallest scale of a parameter", 1e-3, 0, 1},
        {"scale_parameter", "multiply the rate by the parameter's root mean square", 0, 0, 1, true},
        {"relative_step", "the rate is 1 / sqrt(step), at most 0.01; --learning-rate is not used", 0, 0, 1, true},
        {"warmup_init", "with relative_step: the rate is at most 1e-6 times the step", 0, 0, 1, true}};
    return kOptions;
  }
  void check(const OptimizerSettings& settings) const override {
    if (settings.flag("warmup_init") && !settings.flag("relative_step"))
      throw Error(ErrorKind::usage, "--optim-args warmup_init=true without relative_step",
                  "add relative_step=true, or give --warmup-steps");
  }

  // In the order of ops/adafactor/plan.h.
  std::span<const std::string_view> scalars() const override {
    static constexpr std::string_view kScalars[] = {"fresh_share", "relative_rate"};
    return kScalars;
  }
  void fill(const OptimizerSettings& settings, int64_t step, StepScalars& scalars) const override {
    const double t = static_cast<double>(step), most = settings.flag("warmup_init") ? 1e-6 * t : 1e-2;
    scalars.set("fresh_share", std::pow(t, settings.value("decay_rate")));
    scalars.set("relative_rate", std::min(most, 1 / std::sqrt(t)));
  }

  std::vector<OptimizerState> states(const OptimizerSettings& settings, const Type& type,
                                     ParameterKind) const override {
    std::vector<OptimizerState> states;
    if (factored(type)) {
      states = {f32_state("exp_avg_sq_row", type), f32_state("exp_avg_sq_col", type)};
      states[0].type.shape.pop_back();
      states[1].type.shape.erase(states[1].type.shape.end() - 2);
    } else {
      states = {f32_state("exp_avg_sq", type)};
    }
    if (settings.value("beta1") > 0) states.push_back(f32_state("exp_avg", type));
    return states;
  }

  void update(Builder& build, const OptimizerSettings& settings, const UpdateInputs& in) const override {
    append_update_op(build, "adafactor", settings,
                     {"beta1", "clip_threshold", "eps1", "eps2", "scale_parameter", "relative_step"}, in,
                     {{"factored", int64_t{factored(build.type(in.parameter.weight))}}});
  }

 private:
  static bool factored(const Type& type) { return type.shape.size() >= 2; }
};

}  // namespace

void register_adafactor_optimizer(OptimizerRegistry& registry) { registry.add(std::make_unique<AdafactorMethod>()); }

}  // namespace headroom
