// Rules of the Gaussian error linear unit (Hendrycks and Gimpel 2016), exact or by tanh, and its gradient.
#include <memory>

#include "ir/vjp.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

void require_approximate(std::string_view op, const Attrs& attrs) {
  const std::string_view text = attrs.text("approximate", "none");
  HR_CHECK(text == "none" || text == "tanh", "{}: approximate is none or tanh, not '{}'", op, text);
}

class Gelu final : public Op {
 public:
  std::string_view name() const override { return "gelu"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x"}; }
  OpKind kind() const override { return OpKind::activation; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1);
    require_approximate(name(), attrs);
    require_float(name(), "x", inputs[0]);
    return {computed(inputs[0], inputs[0].dtype)};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, false}}; }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone || !context.wants(0)) return;
    context.contribute(0, context.build().call("gelu_grad", {context.input(0), dy}, context.attrs(), Role::gradient));
  }
};

class GeluGrad final : public Op {
 public:
  std::string_view name() const override { return "gelu_grad"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x", "dy"}; }
  OpKind kind() const override { return OpKind::activation; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 2);
    require_approximate(name(), attrs);
    require_float(name(), "x", inputs[0]);
    require_type(name(), "dy", inputs[1], inputs[0]);
    return {computed(inputs[0], inputs[0].dtype)};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 1, false}, {0, 0, false}}; }
};

}  // namespace

void register_gelu_ops(OpRegistry& registry) {
  registry.add(std::make_unique<Gelu>());
  registry.add(std::make_unique<GeluGrad>());
}

}  // namespace headroom
