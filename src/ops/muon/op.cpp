// Rules of Muon (Jordan et al. 2024), as torch.optim.Muon computes it.
#include <memory>

#include "ops/muon/plan.h"
#include "ops/registry.h"
#include "ops/step_scalars.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// (w, g, momentum buffer, hyper, clip, [copy]) -> (w', buffer', [copy']), each in the storage of its input. The buffer
// moves towards g by 1 - momentum; the buffer, or with Nesterov's momentum the same step again, is made nearly
// orthogonal by "ns_steps" Newton-Schulz iterations in bf16, and stepped by; the weight decays apart.
class Muon final : public Op {
 public:
  std::string_view name() const override { return "muon"; }
  OpKind kind() const override { return OpKind::update; }
  OperandNames operands(const Attrs&, size_t inputs) const override {
    OperandNames names{"weight", "gradient", "momentum_buffer", "hyper", "clip"};
    if (inputs > names.size()) names.push_back("copy");
    return names;
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 5, 6);
    HR_CHECK(attrs.real("momentum", -1) >= 0 && attrs.real("momentum") < 1, "muon: momentum is {}",
             attrs.real("momentum", -1));
    HR_CHECK(attrs.integer("ns_steps") >= 1, "muon: ns_steps is {}", attrs.integer("ns_steps"));
    for (const char* known : {"nesterov", "match_rms_adamw", "decay"}) flag(name(), attrs, known);
    const Type& w = inputs[MuonInputs::weight];
    require_float(name(), "the weight", w, 2);
    HR_CHECK(!w.shard, "muon: a slice of a weight is updated as a whole");
    const Type wide = computed(w, DType::f32);
    require_type(name(), "the gradient", inputs[MuonInputs::gradient], wide);
    require_type(name(), "the momentum buffer", inputs[MuonInputs::momentum_buffer], wide);
    require_whole(name(), "hyper", inputs[MuonInputs::hyper], DType::f32, {Dim::of(kHyperCount)});
    require_whole(name(), "clip", inputs[MuonInputs::clip], DType::f32, {Dim::of(1)});
    std::vector<Type> results{w, inputs[MuonInputs::momentum_buffer]};
    if (inputs.size() > MuonInputs::copy) {
      HR_CHECK(w.dtype == DType::f32, "muon: a narrow weight has no copy");
      require_copy(name(), inputs[MuonInputs::copy], w);
      results.push_back(inputs[MuonInputs::copy]);
    }
    return results;
  }

  std::vector<Alias> aliases(const Attrs&, int inputs) const override {
    std::vector<Alias> aliases{{0, MuonInputs::weight, true}, {1, MuonInputs::momentum_buffer, true}};
    if (inputs > MuonInputs::copy) aliases.push_back({MuonOutputs::copy, MuonInputs::copy, true});
    return aliases;
  }

  // Per element: gradient, buffer and weight once; of each iteration three matrices in bf16.
  Work work(const OpCall& call) const override {
    const MuonPlan plan(call.attrs);
    const MuonShape shape(call.inputs[MuonInputs::weight].dims);
    const int64_t bytes = 12 + 2 * dtype_bytes(call.inputs[MuonInputs::weight].dtype) + 6 * plan.steps;
    return {shape.flops(plan), static_cast<double>(bytes * shape.matrices * shape.elements())};
  }
  ProductShape product_shape(const OpCall& call) const override {
    const MuonShape shape(call.inputs[MuonInputs::weight].dims);
    return {shape.narrow(), shape.narrow(), shape.wide()};
  }
  CostClass cost_class() const override { return CostClass::optimizer; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
  bool has_effect() const override { return true; }
};

}  // namespace

void register_muon_ops(OpRegistry& registry) { registry.add(std::make_unique<Muon>()); }

}  // namespace headroom
