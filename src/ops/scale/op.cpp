// Rules of the product with a constant: y = factor x.
#include <memory>

#include "ir/vjp.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

class Scale final : public Op {
 public:
  std::string_view name() const override { return "scale"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1);
    HR_CHECK(attrs.has("factor"), "scale: no factor");
    require_float(name(), "x", inputs[0]);
    return {computed(inputs[0], inputs[0].dtype)};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, false}}; }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone || !context.wants(0)) return;
    context.contribute(0, context.build().call("scale", {dy}, context.attrs(), Role::gradient));
  }
};

}  // namespace

void register_scale_ops(OpRegistry& registry) { registry.add(std::make_unique<Scale>()); }

}  // namespace headroom
