// Rules of the elementwise sum of two tensors of the same type.
#include <memory>

#include "ir/vjp.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

class Add final : public Op {
 public:
  std::string_view name() const override { return "add"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"a", "b"}; }
  OpKind kind() const override { return OpKind::sum; }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    require_inputs(name(), inputs, 2);
    require_float(name(), "a", inputs[0], 0);
    require_type(name(), "b", inputs[1], inputs[0]);
    return {computed(inputs[0], inputs[0].dtype)};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, false}, {0, 1, false}}; }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone) return;
    for (int i = 0; i < 2; ++i)
      if (context.wants(i)) context.contribute(i, dy);
  }
};

}  // namespace

void register_add_ops(OpRegistry& registry) { registry.add(std::make_unique<Add>()); }

}  // namespace headroom
