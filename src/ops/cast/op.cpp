// Rules of the conversion between f32 and bf16 or f16 (round to nearest even). An optional second input, of the
// result's type, is storage that the result uses: a persistent copy refreshed in place.
#include <memory>

#include "ir/vjp.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

class Cast final : public Op {
 public:
  std::string_view name() const override { return "cast"; }
  OperandNames operands(const Attrs&, size_t inputs) const override {
    return inputs == 1 ? OperandNames{"x"} : OperandNames{"x", "storage"};
  }
  OpKind kind() const override { return OpKind::cast; }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1, 2);
    require_float(name(), "x", inputs[0], 0);
    HR_CHECK(attrs.has("dtype"), "cast: the attribute dtype is missing");
    const Type result = computed(inputs[0], float_attr(name(), attrs, inputs[0].dtype));
    if (inputs.size() == 2) require_type(name(), "the storage", inputs[1], result);
    return {result};
  }

  std::vector<Alias> aliases(const Attrs&, int inputs) const override {
    if (inputs == 2) return {{0, 1, true}};
    return {};
  }

  // The storage is written, not read.
  Work work(const OpCall& call) const override {
    return {0, static_cast<double>(storage_bytes(call.inputs[0]) + storage_bytes(call.outputs[0]))};
  }

  CostClass cost_class() const override { return CostClass::copy; }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone || !context.wants(0)) return;
    const DType dtype = context.build().type(context.input(0)).dtype;
    if (context.build().type(dy).dtype == dtype) {
      context.contribute(0, dy);
      return;
    }
    const Attrs attrs{{"dtype", std::string(dtype_name(dtype))}};
    context.contribute(0, context.build().call("cast", {dy}, attrs, Role::gradient));
  }
};

}  // namespace

void register_cast_ops(OpRegistry& registry) { registry.add(std::make_unique<Cast>()); }

}  // namespace headroom
