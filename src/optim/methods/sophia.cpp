// Sophia-G (Liu et al. 2023), with the hyperparameters of its authors' repository. The curvature of step t is estimated
// on the batch of step t before it, for t = 1, 1 + interval, 1 + 2 interval, ... Here "hessian" has the factor B of the
// paper's estimator, which the authors' code keeps out of the state and multiplies in every step; with batches of one
// size both are the same.
#include <cmath>

#include "base/error.h"
#include "optim/lora_plus.h"
#include "optim/registry.h"

namespace headroom {
namespace {

class SophiaMethod final : public Optimizer {
 public:
  std::string_view name() const override { return "sophia"; }

  std::span<const OptimizerOption> options() const override {
    static constexpr OptimizerOption kOptions[] = {
        {"beta1", "decay of the mean gradient", 0.965, 0, 1, false, "--adam-beta1"},
        {"beta2", "decay of the mean curvature", 0.99, 0, 1, false, "--adam-beta2"},
        {"rho", "factor on the curvature: a larger one takes smaller steps", 0.04, 0, 1e9},
        {"interval", "steps from one estimate of the curvature to the next, a whole number", 10, 1, 1e6},
        kLoraPlusRatio};
    return kOptions;
  }
  void check(const OptimizerSettings& settings) const override {
    const double interval = settings.value("interval");
    if (interval != std::floor(interval))
      throw Error(ErrorKind::usage, fmt::format("--optim-args interval={}: not a whole number of steps", interval),
                  fmt::format("interval={}", std::floor(interval)));
  }
  int64_t curvature_interval(const OptimizerSettings& settings) const override {
    return static_cast<int64_t>(settings.value("interval"));
  }

  std::vector<OptimizerState> states(const OptimizerSettings&, const Type& type, ParameterKind) const override {
    return {f32_state("exp_avg", type), f32_state("hessian", type)};
  }

  void update(Builder& build, const OptimizerSettings& settings, const UpdateInputs& in) const override {
    append_update_op(build, "sophia", settings, {"beta1", "beta2", "rho"}, in);
  }
};

}  // namespace

void register_sophia_optimizer(OptimizerRegistry& registry) { registry.add(std::make_unique<SophiaMethod>()); }

}  // namespace headroom
