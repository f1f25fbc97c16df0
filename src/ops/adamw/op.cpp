// Rules of AdamW (Loshchilov and Hutter 2019, with the operation order of torch.optim.AdamW).
#include <memory>

#include "ops/adamw/hyper.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// (w, g, m, v, hyper, clip, [shadow]) -> (w', m', v', [shadow']), each in the storage of its input
class AdamW final : public Op {
 public:
  std::string_view name() const override { return "adamw"; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 6, 7);
    flag(name(), attrs, "decay");
    for (const char* beta : {"beta1", "beta2"})
      HR_CHECK(attrs.real(beta, -1) >= 0 && attrs.real(beta) < 1, "adamw: {} is {}", beta, attrs.real(beta));
    HR_CHECK(attrs.real("eps", -1) >= 0, "adamw: eps is {}", attrs.real("eps"));
    const Type& w = inputs[0];
    HR_CHECK(w.dtype == DType::f32, "adamw: w is f32, not {}", dtype_name(w.dtype));
    require_type(name(), "g", inputs[1], w);
    require_type(name(), "m", inputs[2], w);
    require_type(name(), "v", inputs[3], w);
    require_whole(name(), "hyper", inputs[4], DType::f32, {Dim::of(kHyperCount)});
    require_whole(name(), "clip", inputs[5], DType::f32, {Dim::of(1)});
    std::vector<Type> results{w, inputs[2], inputs[3]};
    if (inputs.size() == 7) {
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

  // Four reads and three writes of f32 per element, and one write of the shadow.
  Work work(const OpCall& call) const override {
    const double elements = static_cast<double>(element_count(call.inputs[0].dims));
    return {15 * elements, (28 + (call.inputs.size() == 7 ? 2 : 0)) * elements};
  }
  CostClass cost_class() const override { return CostClass::optimizer; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
  bool has_effect() const override { return true; }
};

}  // namespace

void register_adamw_ops(OpRegistry& registry) { registry.add(std::make_unique<AdamW>()); }

}  // namespace headroom
