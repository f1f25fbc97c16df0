// Muon (Jordan et al. 2024), as torch.optim.Muon computes it, for matrices; embeddings, the head and vectors are
// updated by AdamW.
#include "base/error.h"
#include "optim/registry.h"

namespace headroom {
namespace {

class MuonMethod final : public Optimizer {
 public:
  std::string_view name() const override { return "muon"; }

  std::span<const OptimizerOption> options() const override {
    static constexpr OptimizerOption kOptions[] = {
        {"momentum", "decay of the mean gradient of a matrix", 0.95, 0, 1},
        {"nesterov", "Nesterov momentum", 1, 0, 1, true},
        {"ns_steps", "iterations that make a step orthogonal, a whole number", 5, 1, 100},
        {"match_rms_adamw", "scale the steps of matrices to the size of AdamW's; false: as first published", 1, 0, 1,
         true},
        {"beta1", "AdamW's, for the other weights", 0.9, 0, 1, false, "--adam-beta1"},
        {"beta2", "AdamW's", 0.999, 0, 1, false, "--adam-beta2"},
        {"eps", "AdamW's", 1e-8, 0, 1, false, "--adam-epsilon"}};
    return kOptions;
  }
  void check(const OptimizerSettings& settings) const override {
    const double steps = settings.value("ns_steps");
    if (steps != static_cast<double>(static_cast<int64_t>(steps)))
      throw Error(ErrorKind::usage, fmt::format("--optim-args ns_steps={} is not a whole number", steps),
                  "give --optim-args ns_steps=5");
  }

  std::span<const std::string_view> scalars() const override { return find_optimizer("adamw").scalars(); }
  void fill(const OptimizerSettings& settings, int64_t step, StepScalars& scalars) const override {
    find_optimizer("adamw").fill(settings, step, scalars);
  }

  std::vector<OptimizerState> states(const OptimizerSettings& settings, const Type& type,
                                     ParameterKind kind) const override {
    if (kind != ParameterKind::matrix) return find_optimizer("adamw").states(settings, type, kind);
    return {f32_state("momentum_buffer", type)};
  }

  void update(Builder& build, const OptimizerSettings& settings, const UpdateInputs& in) const override {
    if (in.parameter.kind != ParameterKind::matrix)
      return append_update_op(build, "adamw", settings, {"beta1", "beta2", "eps"}, in);
    append_update_op(build, "muon", settings, {"momentum", "nesterov", "match_rms_adamw"}, in,
                     {{"ns_steps", static_cast<int64_t>(settings.value("ns_steps"))}});
  }
};

}  // namespace

void register_muon_optimizer(OptimizerRegistry& registry) { registry.add(std::make_unique<MuonMethod>()); }

}  // namespace headroom
