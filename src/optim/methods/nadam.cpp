// NAdam (Dozat 2016), as torch.optim.NAdam computes it; --weight-decay is its weight_decay, on matrices and tables.
#include <cmath>

#include "optim/lora_plus.h"
#include "optim/registry.h"

namespace headroom {
namespace {

class NadamMethod final : public Optimizer {
 public:
  std::string_view name() const override { return "nadam"; }
  bool by_element() const override { return true; }

  std::span<const OptimizerOption> options() const override {
    static constexpr OptimizerOption kOptions[] = {
        {"beta1", "decay of the first moment", 0.9, 0, 1, false, "--adam-beta1"},
        {"beta2", "decay of the second moment", 0.999, 0, 1, false, "--adam-beta2"},
        {"eps", "added to the root of the second moment", 1e-8, 0, 1, false, "--adam-epsilon"},
        {"momentum_decay", "how fast the momentum grows to beta1", 4e-3, 0, 1e3},
        {"decoupled_weight_decay", "the decay shrinks the weight instead of joining the gradient", 0, 0, 1, true},
        kLoraPlusRatio};
    return kOptions;
  }

  // In the order of MomentsUpdate (ops/update/formulas-inl.h).
  std::span<const std::string_view> scalars() const override {
    static constexpr std::string_view kScalars[] = {"gradient_share", "mean_share", "root_share", "floor"};
    return kScalars;
  }
  void fill(const OptimizerSettings& settings, int64_t step, StepScalars& scalars) const override {
    const double now = momentum(settings, step), next = momentum(settings, step + 1);
    const double product = momentum_product(settings, step);
    scalars.set("gradient_share", (1 - now) / (1 - product));
    scalars.set("mean_share", next / (1 - product * next));
    scalars.set("root_share", 1 / std::sqrt(1 - std::pow(settings.value("beta2"), static_cast<double>(step))));
    scalars.set("floor", settings.value("eps"));
  }

  std::vector<OptimizerState> states(const OptimizerSettings&, const Type& type, ParameterKind) const override {
    return {f32_state("exp_avg", type), f32_state("exp_avg_sq", type)};
  }

  void update(Builder& build, const OptimizerSettings& settings, const UpdateInputs& in) const override {
    append_update_op(build, "moments", settings, {"beta1", "beta2"}, in,
                     {{"decoupled", int64_t{settings.flag("decoupled_weight_decay")}}});
  }

 private:
  static double momentum(const OptimizerSettings& settings, int64_t step) {
    const double age = static_cast<double>(step) * settings.value("momentum_decay");
    return settings.value("beta1") * (1 - 0.5 * std::pow(0.96, age));
  }

  // Of all steps until this one. Only its difference from 1 counts, so that a small one is as good as 0.
  static double momentum_product(const OptimizerSettings& settings, int64_t step) {
    double product = 1;
    for (int64_t t = 1; t <= step && product > 1e-20; ++t) product *= momentum(settings, t);
    return product;
  }
};

}  // namespace

void register_nadam_optimizer(OptimizerRegistry& registry) { registry.add(std::make_unique<NadamMethod>()); }

}  // namespace headroom
