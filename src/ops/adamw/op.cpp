// Rules of AdamW (Loshchilov and Hutter 2019, with the operation order of torch.optim.AdamW).
#include <memory>

#include "ops/adamw/hyper.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// (w, g, m, v, hyper, clip, [shadow]) -> (w', m', v', [shadow']), each in the storage of its input. A bf16 weight has
// no shadow; its new value is rounded stochastically by draws keyed by hyper's seed and step, attribute "tensor" and
// the element's index.
class AdamW final : public Op {
 public:
  std::string_view name() const override { return "adamw"; }
  OperandNames operands(const Attrs&, size_t inputs) const override {
    OperandNames names{"weight", "gradient", "exp_avg", "exp_avg_sq", "hyper", "clip"};
    if (inputs > names.size()) names.push_back("copy");
    return names;
  }
  OpKind kind() const override { return OpKind::update; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 6, 7);
    flag(name(), attrs, "decay");
    for (const char* beta : {"beta1", "beta2"})
      HR_CHECK(attrs.real(beta, -1) >= 0 && attrs.real(beta) < 1, "adamw: {} is {}", beta, attrs.real(beta));
    HR_CHECK(attrs.real("eps", -1) >= 0, "adamw: eps is {}", attrs.real("eps"));
    const Type& w = inputs[0];
    require_float(name(), "w", w, 0);
    const Type wide = computed(w, DType::f32);
    require_type(name(), "g", inputs[1], wide);
    require_type(name(), "m", inputs[2], wide);
    require_type(name(), "v", inputs[3], wide);
    require_whole(name(), "hyper", inputs[4], DType::f32, {Dim::of(kHyperCount)});
    require_whole(name(), "clip", inputs[5], DType::f32, {Dim::of(1)});
    std::vector<Type> results{w, inputs[2], inputs[3]};
    if (inputs.size() == 7) {
      HR_CHECK(w.dtype == DType::f32, "adamw: a bf16 weight has no shadow");
      require_type(name(), "the shadow", inputs[6], computed(w, DType::bf16));
      results.push_back(inputs[6]);
    }
    return results;
  }

  std::vector<Alias> aliases(const Attrs&, int inputs) const override {
    std::vector<Alias> aliases{{0, 0, true}, {1, 2, true}, {2, 3, true}};
    if (inputs == 7) aliases.push_back({3, 6, true});
    return aliases;
  }

  // Per element: g is read, m, v and w are read and written, and the shadow is written.
  Work work(const OpCall& call) const override {
    const double elements = static_cast<double>(element_count(call.inputs[0].dims));
    const double weight = static_cast<double>(2 * dtype_bytes(call.inputs[0].dtype));
    return {15 * elements, (20 + weight + (call.inputs.size() == 7 ? 2 : 0)) * elements};
  }
  CostClass cost_class() const override { return CostClass::optimizer; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
  bool has_effect() const override { return true; }
};

}  // namespace

void register_adamw_ops(OpRegistry& registry) { registry.add(std::make_unique<AdamW>()); }

}  // namespace headroom
