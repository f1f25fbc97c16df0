// Rules of the experts' linear layers and of their two products for the gradient. f32 weights with a narrow operand are
// rounded to its dtype when they are multiplied.
#include <memory>

#include "ir/vjp.h"
#include "ops/moe_linear/products.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// w is [experts, outs, ins], of the operand's dtype or f32; `wide` has the rows, sorted by expert; `offsets` has the
// range of each expert.
void check_operands(std::string_view op, const Type& wide, const Type& weight, const Type& offsets) {
  require_float(op, "the operand", wide, 2);
  HR_CHECK((weight.dtype == wide.dtype || weight.dtype == DType::f32) && weight.shape.size() == 3 && !weight.shard &&
               !wide.shard,
           "{}: weights are {}[experts, outs, ins], whole", op, dtype_name(wide.dtype));
  const int64_t experts = constant_dim(op, "the number of experts", weight.shape[0]);
  require_whole(op, "offsets", offsets, DType::i32, {Dim::of(experts + 1)});
}

// The operand's shape with its last dimension, which must be `from`, replaced by `to`.
Type replace_last(std::string_view op, const Type& operand, const Dim& from, const Dim& to, const Attrs& attrs) {
  HR_CHECK(operand.shape.back() == from, "{}: the operand's last dimension is not that of the weight", op);
  const DType dtype = float_attr(op, attrs, operand.dtype);
  HR_CHECK(dtype == DType::f32 || dtype == operand.dtype, "{}: no {} result from {} operands", op, dtype_name(dtype),
           dtype_name(operand.dtype));
  Type result{dtype, operand.shape};
  result.shape.back() = to;
  return result;
}

// The result may use the storage of the addend.
std::vector<Alias> onto_addend(const Attrs& attrs, int inputs) {
  if (attrs.integer("addend") == 0) return {};
  return {{0, inputs - 1, false}};
}

// The names of a call's inputs.
OperandNames with_addend(OperandNames names, const Attrs& attrs) {
  if (attrs.integer("addend") != 0) names.push_back("addend");
  return names;
}

// One expert's product with its mean share of the rows.
ProductShape mean_product(const ExpertShape& shape) {
  return {std::max<int64_t>(1, shape.rows / shape.experts), shape.outs, shape.ins};
}

// Of input `weights` only what is read counts: the matrices of experts that have rows.
Work product_work(const OpCall& call, const ExpertShape& shape, size_t weights) {
  Work work{2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.outs) * static_cast<double>(shape.ins)};
  const double read = std::min(1.0, static_cast<double>(shape.rows) / static_cast<double>(shape.experts));
  for (size_t i = 0; i < call.inputs.size(); ++i)
    work.bytes += (i == weights ? read : 1.0) * static_cast<double>(storage_bytes(call.inputs[i]));
  for (const ConcreteType& type : call.outputs) work.bytes += static_cast<double>(storage_bytes(type));
  return work;
}

// y[..., outs] = x[..., ins] w[expert of the row]^T [+ addend]; inputs x, w, offsets [, addend]. With attribute
// batch_invariant 1, the bits of a row of the result do not depend on the other rows.
class ExpertLinear final : public Op {
 public:
  std::string_view name() const override { return "expert_linear"; }
  OperandNames operands(const Attrs& attrs, size_t) const override {
    return with_addend({"x", "weight", "offsets"}, attrs);
  }
  Product product() const override { return {ProductPart::output, ProductMatrices::experts}; }
  ProductShape product_shape(const OpCall& call) const override { return mean_product(rows_shape(call)); }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    const bool addend = flag(name(), attrs, "addend");
    flag(name(), attrs, "batch_invariant");
    require_inputs(name(), inputs, 3 + size_t{addend});
    check_operands(name(), inputs[ExpertInputs::rows], inputs[ExpertInputs::weight], inputs[ExpertInputs::offsets]);
    const Type y = replace_last(name(), inputs[ExpertInputs::rows], inputs[ExpertInputs::weight].shape[2],
                                inputs[ExpertInputs::weight].shape[1], attrs);
    if (addend) require_type(name(), "addend", inputs[ExpertInputs::addend], y);
    return {y};
  }

  std::vector<Alias> aliases(const Attrs& attrs, int inputs) const override { return onto_addend(attrs, inputs); }
  Work work(const OpCall& call) const override { return product_work(call, rows_shape(call), ExpertInputs::weight); }
  CostClass cost_class() const override { return CostClass::gemm; }
  RecomputeClass recompute_class() const override { return RecomputeClass::linear; }
  std::vector<int> narrow_inputs(const Attrs&) const override { return {ExpertInputs::rows, ExpertInputs::weight}; }
  std::vector<int> rounded_inputs() const override { return {ExpertInputs::weight}; }
  std::string_view narrow_dtype(const Attrs&) const override { return "bf16"; }

  void vjp(VjpContext& context) const override {
    ValueId dy = context.cotangent(0);
    if (dy != kNone && context.attrs().integer("addend") != 0 && context.wants(ExpertInputs::addend))
      context.contribute(ExpertInputs::addend, dy);
    HR_CHECK(context.trains(ExpertInputs::weight) || !context.wants(ExpertInputs::weight),
             "expert_linear: no gradient for a weight that is computed");
    if (dy == kNone || (!context.trains(ExpertInputs::weight) && !context.wants(ExpertInputs::rows))) return;
    const DType dtype = context.build().type(context.input(ExpertInputs::rows)).dtype;
    if (context.build().type(dy).dtype != dtype)
      dy = context.build().call("cast", {dy}, {{"dtype", std::string(dtype_name(dtype))}}, Role::gradient);
    if (context.trains(ExpertInputs::weight))
      context.set_accumulator(
          ExpertInputs::weight,
          context.build().call("expert_linear_dw",
                               {context.input(ExpertInputs::rows), dy, context.input(ExpertInputs::offsets),
                                context.accumulator(ExpertInputs::weight)},
                               {{"accumulate", std::string(context.accumulate(ExpertInputs::weight))}},
                               Role::gradient));
    if (context.wants(ExpertInputs::rows)) pass_on(context, dy);
  }

 private:
  static void pass_on(VjpContext& context, ValueId dy) {
    const ValueId addend = context.addend(ExpertInputs::rows);
    Attrs attrs;
    if (addend != kNone) attrs.set("addend", int64_t{1});
    const ValueId dx = context.build().call(
        "expert_linear_dx", {dy, context.input(ExpertInputs::weight), context.input(ExpertInputs::offsets), addend},
        std::move(attrs), Role::gradient);
    if (addend != kNone)
      context.set_total(ExpertInputs::rows, dx);
    else
      context.contribute(ExpertInputs::rows, dx);
  }
};

// dx = dy w[expert of the row] [+ addend]; inputs dy, w, offsets [, addend]
class ExpertLinearDx final : public Op {
 public:
  std::string_view name() const override { return "expert_linear_dx"; }
  OperandNames operands(const Attrs& attrs, size_t) const override {
    return with_addend({"dy", "weight", "offsets"}, attrs);
  }
  Product product() const override { return {ProductPart::input_gradient, ProductMatrices::experts}; }
  ProductShape product_shape(const OpCall& call) const override { return mean_product(rows_shape(call)); }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    const bool addend = flag(name(), attrs, "addend");
    require_inputs(name(), inputs, 3 + size_t{addend});
    check_operands(name(), inputs[ExpertInputs::rows], inputs[ExpertInputs::weight], inputs[ExpertInputs::offsets]);
    const Type dx = replace_last(name(), inputs[ExpertInputs::rows], inputs[ExpertInputs::weight].shape[1],
                                 inputs[ExpertInputs::weight].shape[2], attrs);
    if (addend) require_type(name(), "addend", inputs[ExpertInputs::addend], dx);
    return {dx};
  }

  std::vector<Alias> aliases(const Attrs& attrs, int inputs) const override { return onto_addend(attrs, inputs); }
  Work work(const OpCall& call) const override { return product_work(call, rows_shape(call), ExpertInputs::weight); }
  CostClass cost_class() const override { return CostClass::gemm; }
  RecomputeClass recompute_class() const override { return RecomputeClass::linear; }
  std::vector<int> rounded_inputs() const override { return {ExpertInputs::weight}; }
};

// acc[expert] [+]= dy^T x over the expert's rows; inputs x, dy, offsets, acc
class ExpertLinearDw final : public Op {
 public:
  std::string_view name() const override { return "expert_linear_dw"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x", "dy", "offsets", "accumulator"}; }
  Product product() const override { return {ProductPart::weight_gradient, ProductMatrices::experts}; }
  ProductShape product_shape(const OpCall& call) const override { return mean_product(gradient_shape(call)); }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 4);
    const Type &x = inputs[ExpertGradInputs::x], &dy = inputs[ExpertGradInputs::dy],
               &sums = inputs[ExpertGradInputs::accumulator];
    check_operands(name(), x, Type{x.dtype, sums.shape}, inputs[ExpertGradInputs::offsets]);
    require_float(name(), "dy", dy, 2);
    require_accumulate(name(), attrs);
    std::vector<Dim> rows = x.shape;
    rows.back() = dy.shape.back();
    require_type(name(), "dy", dy, Type{x.dtype, rows});
    require_type(name(), "the accumulator", sums, Type{DType::f32, {sums.shape[0], dy.shape.back(), x.shape.back()}});
    return {sums};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, ExpertGradInputs::accumulator, true}}; }
  Work work(const OpCall& call) const override { return product_work(call, gradient_shape(call), call.inputs.size()); }
  CostClass cost_class() const override { return CostClass::gemm; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

}  // namespace

void register_moe_linear_ops(OpRegistry& registry) {
  registry.add(std::make_unique<ExpertLinear>());
  registry.add(std::make_unique<ExpertLinearDx>());
  registry.add(std::make_unique<ExpertLinearDw>());
}

}  // namespace headroom
