// Adagrad (Duchi, Hazan & Singer 2011), as torch.optim.Adagrad computes it; --weight-decay is added to the gradients of
// matrices and tables.
#include "optim/lora_plus.h"
#include "optim/registry.h"

namespace headroom {
namespace {

class AdagradMethod final : public Optimizer {
 public:
  std::string_view name() const override { return "adagrad"; }
  bool by_element() const override { return true; }

  std::span<const OptimizerOption> options() const override {
    static constexpr OptimizerOption kOptions[] = {{"lr_decay", "divides the rate by 1 + (step - 1) lr_decay", 0, 0, 1},
                                                   {"eps", "added to the root of the sum", 1e-10, 0, 1},
                                                   kLoraPlusRatio};
    return kOptions;
  }

  std::span<const std::string_view> scalars() const override {
    static constexpr std::string_view kScalars[] = {"rate_factor"};
    return kScalars;
  }
  void fill(const OptimizerSettings& settings, int64_t step, StepScalars& scalars) const override {
    scalars.set("rate_factor", 1 / (1 + static_cast<double>(step - 1) * settings.value("lr_decay")));
  }

  std::vector<OptimizerState> states(const OptimizerSettings&, const Type& type, ParameterKind) const override {
    return {f32_state("sum", type)};
  }

  void update(Builder& build, const OptimizerSettings& settings, const UpdateInputs& in) const override {
    append_update_op(build, "adagrad", settings, {"eps"}, in);
  }
};

}  // namespace

void register_adagrad_optimizer(OptimizerRegistry& registry) { registry.add(std::make_unique<AdagradMethod>()); }

}  // namespace headroom
