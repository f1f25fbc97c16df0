// AdamW (Loshchilov & Hutter 2019, Algorithm 2) and Adam (Kingma & Ba 2015, with L2 decay), as torch.optim computes
// them, and AdamW with states in 8 bits (Dettmers et al. 2022), as bitsandbytes does.
#include <cmath>

#include "optim/lora_plus.h"
#include "optim/registry.h"

namespace headroom {
namespace {

constexpr OptimizerOption kAdamOptions[] = {
    {"beta1", "decay of the first moment", 0.9, 0, 1, false, "--adam-beta1"},
    {"beta2", "decay of the second moment", 0.999, 0, 1, false, "--adam-beta2"},
    {"eps", "added to the root of the second moment", 1e-8, 0, 1, false, "--adam-epsilon"},
    kLoraPlusRatio,
    k8bitFloor};
constexpr std::string_view kAdamWNames[] = {"adamw_torch", "adamw_torch_fused", "paged_adamw_32bit"};
constexpr std::string_view k8bitNames[] = {"adamw_8bit", "paged_adamw_8bit"};

enum class Adam { decoupled, joined, in_8_bits };

class AdamMethod final : public Optimizer {
 public:
  explicit AdamMethod(Adam form) : form_(form) {}

  std::string_view name() const override {
    return form_ == Adam::joined ? "adam" : form_ == Adam::decoupled ? "adamw" : "adamw_bnb_8bit";
  }
  bool by_element() const override { return form_ != Adam::in_8_bits; }
  std::string_view in_8_bits() const override { return form_ == Adam::decoupled ? "adamw_bnb_8bit" : ""; }
  std::span<const std::string_view> aliases() const override {
    if (form_ == Adam::decoupled) return kAdamWNames;
    if (form_ == Adam::in_8_bits) return k8bitNames;
    return {};
  }
  std::span<const OptimizerOption> options() const override {
    return std::span(kAdamOptions).first(form_ == Adam::in_8_bits ? 5 : 4);
  }

  // In the order of ops/update/hyper.h.
  std::span<const std::string_view> scalars() const override {
    static constexpr std::string_view kScalars[] = {"bias_correction1", "sqrt_bias_correction2"};
    return kScalars;
  }
  void fill(const OptimizerSettings& settings, int64_t step, StepScalars& scalars) const override {
    const double t = static_cast<double>(step);
    scalars.set("bias_correction1", 1 - std::pow(settings.value("beta1"), t));
    scalars.set("sqrt_bias_correction2", std::sqrt(1 - std::pow(settings.value("beta2"), t)));
  }

  std::vector<OptimizerState> states(const OptimizerSettings& settings, const Type& type,
                                     ParameterKind kind) const override {
    if (!narrow_states(settings, type, kind)) return {f32_state("exp_avg", type), f32_state("exp_avg_sq", type)};
    std::vector<OptimizerState> states;
    add_8bit_state(states, "exp_avg", "exp_avg_absmax", type);
    add_8bit_state(states, "exp_avg_sq", "exp_avg_sq_absmax", type);
    return states;
  }

  void update(Builder& build, const OptimizerSettings& settings, const UpdateInputs& in) const override {
    const bool narrow = narrow_states(settings, build.type(in.parameter.weight), in.parameter.kind);
    append_update_op(build,
                     narrow                  ? "adamw_8bit"
                     : form_ == Adam::joined ? "adam"
                                             : "adamw",
                     settings, {"beta1", "beta2", "eps"}, in);
  }

 private:
  bool narrow_states(const OptimizerSettings& settings, const Type& type, ParameterKind kind) const {
    return form_ == Adam::in_8_bits && takes_8bit_states(settings, type, kind);
  }

  Adam form_;
};

}  // namespace

void register_adamw_optimizer(OptimizerRegistry& registry) {
  for (const Adam form : {Adam::decoupled, Adam::joined, Adam::in_8_bits})
    registry.add(std::make_unique<AdamMethod>(form));
}

}  // namespace headroom
