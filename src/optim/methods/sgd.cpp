// Stochastic gradient descent with momentum, as torch.optim.SGD computes it; --weight-decay is its weight_decay, on
// matrices and tables.
#include "base/error.h"
#include "optim/lora_plus.h"
#include "optim/registry.h"

namespace headroom {
namespace {

class SgdMethod final : public Optimizer {
 public:
  std::string_view name() const override { return "sgd"; }
  bool by_element() const override { return true; }

  std::span<const OptimizerOption> options() const override {
    static constexpr OptimizerOption kOptions[] = {{"momentum", "decay of the sum of gradients, 0 keeps none", 0, 0, 1},
                                                   {"nesterov", "Nesterov momentum", 0, 0, 1, true},
                                                   kLoraPlusRatio};
    return kOptions;
  }
  void check(const OptimizerSettings& settings) const override {
    if (settings.flag("nesterov") && settings.value("momentum") == 0)
      throw Error(ErrorKind::usage, "--optim-args nesterov=true without momentum",
                  "add momentum: --optim-args momentum=0.9,nesterov=true");
  }

  std::vector<OptimizerState> states(const OptimizerSettings& settings, const Type& type,
                                     ParameterKind) const override {
    if (settings.value("momentum") == 0) return {};
    return {f32_state("momentum_buffer", type)};
  }

  void update(Builder& build, const OptimizerSettings& settings, const UpdateInputs& in) const override {
    append_update_op(build, "sgd", settings, {"momentum", "nesterov"}, in);
  }
};

}  // namespace

void register_sgd_optimizer(OptimizerRegistry& registry) { registry.add(std::make_unique<SgdMethod>()); }

}  // namespace headroom
