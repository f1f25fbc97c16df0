// Rules of dropout (Srivastava et al. 2014, inverted): y = x / (1 - rate) with probability 1 - rate, else 0.
//
// Whether element i of the step's global batch is kept is a function of the run's seed, the step, attribute "tensor"
// and i: the same in recomputation, in the backward pass and for any division into micro-batches. Attribute "dtype" is
// y's; if absent, it is x's.
#include <memory>

#include "ir/vjp.h"
#include "ops/registry.h"
#include "ops/step_scalars.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// (x, hyper) -> y
class Dropout final : public Op {
 public:
  std::string_view name() const override { return "dropout"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x", "hyper"}; }
  // With attribute "stream" 1 the result joins the fp32 residual stream.
  std::string_view narrow_dtype(const Attrs& attrs) const override {
    return attrs.integer("stream") != 0 ? "f32" : std::string_view();
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 2);
    require_float(name(), "x", inputs[0]);
    require_whole(name(), "hyper", inputs[1], DType::f32, {Dim::of(kHyperCount)});
    HR_CHECK(attrs.real("rate", -1) >= 0 && attrs.real("rate") < 1, "dropout: rate is {}", attrs.real("rate"));
    return {computed(inputs[0], float_attr(name(), attrs, inputs[0].dtype))};
  }

  // Storage is shared only between values of the same dtype.
  std::vector<Alias> aliases(const Attrs& attrs, int) const override {
    if (attrs.has("dtype")) return {};
    return {{0, 0, false}};
  }

  void leave_training(std::vector<int32_t>&, Attrs& attrs) const override { attrs.set("rate", 0.0); }
  // With "dtype", dropout is also a cast.
  bool is_identity(const Attrs& attrs) const override { return attrs.real("rate") == 0 && !attrs.has("dtype"); }

  Work work(const OpCall& call) const override {
    return {10 * static_cast<double>(element_count(call.inputs[0].dims)),
            static_cast<double>(storage_bytes(call.inputs[0]) + storage_bytes(call.outputs[0]))};
  }

  // The same elements of the cotangent are dropped.
  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone || !context.wants(0)) return;
    Builder& build = context.build();
    Attrs attrs{{"rate", context.attrs().real("rate")}, {"tensor", context.attrs().integer("tensor")}};
    const DType dtype = build.type(context.input(0)).dtype;
    if (dtype != build.type(dy).dtype) attrs.set("dtype", std::string(dtype_name(dtype)));
    context.contribute(0, build.call("dropout", {dy, context.input(1)}, std::move(attrs), Role::gradient));
  }
};

}  // namespace

void register_dropout_ops(OpRegistry& registry) { registry.add(std::make_unique<Dropout>()); }

}  // namespace headroom
