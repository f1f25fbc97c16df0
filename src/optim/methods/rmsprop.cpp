// RMSprop (Tieleman & Hinton 2012), as torch.optim.RMSprop computes it; --weight-decay is added to the gradients of
// matrices and tables.
#include "optim/lora_plus.h"
#include "optim/registry.h"

namespace headroom {
namespace {

class RmspropMethod final : public Optimizer {
 public:
  std::string_view name() const override { return "rmsprop"; }
  bool by_element() const override { return true; }

  std::span<const OptimizerOption> options() const override {
    static constexpr OptimizerOption kOptions[] = {
        {"alpha", "decay of the mean square", 0.99, 0, 1},
        {"eps", "added to its root", 1e-8, 0, 1},
        {"momentum", "decay of the sum of steps, 0 keeps none", 0, 0, 1},
        {"centered", "divides by the deviation from the mean gradient", 0, 0, 1, true},
        kLoraPlusRatio};
    return kOptions;
  }

  // In the order of the formula's states (ops/update/formula.h).
  std::vector<OptimizerState> states(const OptimizerSettings& settings, const Type& type,
                                     ParameterKind) const override {
    std::vector<OptimizerState> states{f32_state("square_avg", type)};
    if (settings.flag("centered")) states.push_back(f32_state("grad_avg", type));
    if (settings.value("momentum") > 0) states.push_back(f32_state("momentum_buffer", type));
    return states;
  }

  void update(Builder& build, const OptimizerSettings& settings, const UpdateInputs& in) const override {
    append_update_op(build, "rmsprop", settings, {"alpha", "eps", "momentum", "centered"}, in);
  }
};

}  // namespace

void register_rmsprop_optimizer(OptimizerRegistry& registry) { registry.add(std::make_unique<RmspropMethod>()); }

}  // namespace headroom
