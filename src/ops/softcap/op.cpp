// Rules of the soft cap (Gemma 2): y = cap tanh(x / cap), between -cap and cap, and its gradient.
#include <memory>

#include "ir/vjp.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

void require_cap(std::string_view op, const Attrs& attrs) {
  HR_CHECK(attrs.real("cap") > 0, "{}: cap is {}, not above 0", op, attrs.real("cap"));
}

class Softcap final : public Op {
 public:
  std::string_view name() const override { return "softcap"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1);
    require_cap(name(), attrs);
    require_float(name(), "x", inputs[0]);
    return {computed(inputs[0], inputs[0].dtype)};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, false}}; }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone || !context.wants(0)) return;
    const std::vector<ValueId> inputs{context.output(0), dy};
    context.contribute(0, context.build().call("softcap_grad", inputs, context.attrs(), Role::gradient));
  }
};

// dx = dy (1 - (y / cap)^2)
class SoftcapGrad final : public Op {
 public:
  std::string_view name() const override { return "softcap_grad"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"y", "dy"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 2);
    require_cap(name(), attrs);
    require_float(name(), "y", inputs[0]);
    require_type(name(), "dy", inputs[1], inputs[0]);
    return {computed(inputs[0], inputs[0].dtype)};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 1, false}, {0, 0, false}}; }
};

}  // namespace

void register_softcap_ops(OpRegistry& registry) {
  registry.add(std::make_unique<Softcap>());
  registry.add(std::make_unique<SoftcapGrad>());
}

}  // namespace headroom
