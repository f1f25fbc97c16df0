// AdamW (Loshchilov & Hutter 2019, Algorithm 2), as torch.optim.AdamW computes it.
#include <cmath>

#include "optim/registry.h"

namespace headroom {
namespace {

class AdamWMethod final : public Optimizer {
 public:
  std::string_view name() const override { return "adamw"; }

  std::span<const OptimizerOption> options() const override {
    static constexpr OptimizerOption kOptions[] = {
        {"beta1", "decay of the first moment", 0.9, 0, 1, false, "--adam-beta1"},
        {"beta2", "decay of the second moment", 0.999, 0, 1, false, "--adam-beta2"},
        {"eps", "added to the root of the second moment", 1e-8, 0, 1, false, "--adam-epsilon"}};
    return kOptions;
  }

  // In the order of ops/adamw/hyper.h.
  std::span<const std::string_view> scalars() const override {
    static constexpr std::string_view kScalars[] = {"bias_correction1", "sqrt_bias_correction2"};
    return kScalars;
  }
  void fill(const OptimizerSettings& settings, int64_t step, StepScalars& scalars) const override {
    const double t = static_cast<double>(step);
    scalars.set("bias_correction1", 1 - std::pow(settings.value("beta1"), t));
    scalars.set("sqrt_bias_correction2", std::sqrt(1 - std::pow(settings.value("beta2"), t)));
  }

  std::vector<OptimizerState> states(const OptimizerSettings&, const Type& type, ParameterKind) const override {
    const Type moment{DType::f32, type.shape};
    return {{"exp_avg", moment}, {"exp_avg_sq", moment}};
  }

  void update(Builder& build, const OptimizerSettings& settings, const UpdateInputs& in) const override {
    Attrs attrs = update_attrs(build.graph(), in.parameter);
    for (const char* option : {"beta1", "beta2", "eps"}) attrs.set(option, settings.value(option));
    build.append("adamw", {in.parameter.weight, in.gradient, in.states[0], in.states[1], in.hyper, in.clip, in.copy},
                 std::move(attrs));
  }
};

}  // namespace

void register_adamw_optimizer(OptimizerRegistry& registry) { registry.add(std::make_unique<AdamWMethod>()); }

}  // namespace headroom
