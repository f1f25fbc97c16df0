// Rules of the gated unit f(gate) * up (Shazeer 2020) and its gradient; f is silu, or a GELU by attribute.
#include <memory>

#include "ir/vjp.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"
#include "ops/swiglu/activation.h"

namespace headroom {
namespace {

using namespace operand_rules;

class Swiglu final : public Op {
 public:
  std::string_view name() const override { return "swiglu"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"gate", "up"}; }
  OpKind kind() const override { return OpKind::activation; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 2);
    gate_activation(attrs);
    require_float(name(), "gate", inputs[0]);
    require_type(name(), "up", inputs[1], inputs[0]);
    return {computed(inputs[0], inputs[0].dtype)};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, false}, {0, 1, false}}; }

  void vjp(VjpContext& context) const override {
    const ValueId dh = context.cotangent(0);
    if (dh == kNone || (!context.wants(0) && !context.wants(1))) return;
    const std::vector<ValueId> results = context.build().append("swiglu_grad", {context.input(0), context.input(1), dh},
                                                                context.attrs(), Role::gradient);
    for (int i = 0; i < 2; ++i)
      if (context.wants(i)) context.contribute(i, results[static_cast<size_t>(i)]);
  }
};

class SwigluGrad final : public Op {
 public:
  std::string_view name() const override { return "swiglu_grad"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"gate", "up", "dy"}; }
  OpKind kind() const override { return OpKind::activation; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 3);
    gate_activation(attrs);
    require_float(name(), "gate", inputs[0]);
    require_type(name(), "up", inputs[1], inputs[0]);
    require_type(name(), "dh", inputs[2], inputs[0]);
    const Type result = computed(inputs[0], inputs[0].dtype);
    return {result, result};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, false}, {0, 2, false}, {1, 1, false}}; }
};

}  // namespace

void register_swiglu_ops(OpRegistry& registry) {
  registry.add(std::make_unique<Swiglu>());
  registry.add(std::make_unique<SwigluGrad>());
}

}  // namespace headroom
