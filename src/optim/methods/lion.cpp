// Lion (Chen et al. 2023, Program 1), with transformers' defaults (the paper's beta2 is 0.99). Its state is in 32 bits
// or, as in bitsandbytes, in 8.
#include "optim/lora_plus.h"
#include "optim/registry.h"

namespace headroom {
namespace {

constexpr OptimizerOption kLionOptions[] = {
    {"beta1", "weight of the momentum in the update direction", 0.9, 0, 1, false, "--adam-beta1"},
    {"beta2", "decay of the mean gradient", 0.999, 0, 1, false, "--adam-beta2"},
    kLoraPlusRatio,
    k8bitFloor};
constexpr std::string_view kLionNames[] = {"lion", "paged_lion_32bit"};
constexpr std::string_view kLion8bitNames[] = {"paged_lion_8bit"};

class LionMethod final : public Optimizer {
 public:
  explicit LionMethod(bool narrow) : narrow_(narrow) {}

  std::string_view name() const override { return narrow_ ? "lion_8bit" : "lion_32bit"; }
  std::string_view in_8_bits() const override { return narrow_ ? "" : "lion_8bit"; }
  bool by_element() const override { return !narrow_; }
  std::span<const std::string_view> aliases() const override {
    if (narrow_) return kLion8bitNames;
    return kLionNames;
  }
  std::span<const OptimizerOption> options() const override { return std::span(kLionOptions).first(narrow_ ? 4 : 3); }

  std::vector<OptimizerState> states(const OptimizerSettings& settings, const Type& type,
                                     ParameterKind kind) const override {
    if (!in_8_bits(settings, type, kind)) return {f32_state("exp_avg", type)};
    std::vector<OptimizerState> states;
    add_8bit_state(states, "exp_avg", "exp_avg_absmax", type);
    return states;
  }

  void update(Builder& build, const OptimizerSettings& settings, const UpdateInputs& in) const override {
    const bool narrow = in_8_bits(settings, build.type(in.parameter.weight), in.parameter.kind);
    append_update_op(build, narrow ? "lion_8bit" : "lion", settings, {"beta1", "beta2"}, in);
  }

 private:
  bool in_8_bits(const OptimizerSettings& settings, const Type& type, ParameterKind kind) const {
    return narrow_ && takes_8bit_states(settings, type, kind);
  }

  bool narrow_;
};

}  // namespace

void register_lion_optimizer(OptimizerRegistry& registry) {
  registry.add(std::make_unique<LionMethod>(false));
  registry.add(std::make_unique<LionMethod>(true));
}

}  // namespace headroom
