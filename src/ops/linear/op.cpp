// Rules of linear, its two products for the gradient, and the gradient of the bias. An f32 weight beside a narrow
// operand is rounded to its dtype where it is multiplied: the same numbers as of a cast before. A weight in blocks of
// codes is decoded there. Attribute batch_invariant 1 of linear: a row of the result has the same bits whatever the
// number of rows, those that it has alone.
#include <memory>

#include "base/error.h"
#include "ir/vjp.h"
#include "ops/linear/int8.h"
#include "ops/linear/int8_blocks.h"
#include "ops/linear/scratch.h"
#include "ops/linear/shape.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using operand_rules::is_float;

void check_count(std::string_view op, size_t found, size_t wanted) {
  HR_CHECK(found == wanted, "{} takes {} inputs, not {}", op, wanted, found);
}

void check_dense(std::string_view op, std::span<const Type> inputs) {
  for (const Type& type : inputs) HR_CHECK(type.storage.dense(), "{} takes dense inputs", op);
}

// All but the weight, whose elements may be f32 in blocks of codes.
void check_storage(std::string_view op, std::span<const Type> inputs) {
  check_dense(op, inputs.first(1));
  check_dense(op, inputs.subspan(2));
  HR_CHECK(inputs[LinearInputs::weight].storage.dense() || inputs[LinearInputs::weight].dtype == DType::f32,
           "{}: codes of {} elements", op, dtype_name(inputs[LinearInputs::weight].dtype));
}

// Checks the attributes and operands that every product has in common. A weight may be wider than what it meets.
enum class Right { operand, weight };
void check_operands(std::string_view op, const Type& left, const Type& right, const Attrs& attrs, Right kind) {
  const std::string_view layout = attrs.text("layout", "out_in");
  HR_CHECK(layout == "out_in" || layout == "in_out", "{}: layout is out_in or in_out, not '{}'", op, layout);
  HR_CHECK(left.shape.size() >= 2 && right.shape.size() >= 2, "{}: operands have two dimensions or more", op);
  const bool rounded = kind == Right::weight && right.dtype == DType::f32;
  HR_CHECK(is_float(left.dtype) && (left.dtype == right.dtype || rounded), "{}: no product of {} and {}", op,
           dtype_name(left.dtype), dtype_name(right.dtype));
  HR_CHECK(attrs.text("multiply") != kMultiplyInt8 || (right.storage.dense() && attrs.integer("low_rank") == 0),
           "{}: products of 8-bit codes have a dense weight and no low-rank part", op);
  HR_CHECK(!multiplies_int8_blocks(attrs) || (has_int8_blocks(right.storage, right.shape.back().constant) &&
                                              layout == "out_in" && attrs.integer("low_rank") == 0),
           "{}: 8-bit activations meet blocks of whole numbers, and no low-rank part", op);
}

DType output_dtype(std::string_view op, DType operand, const Attrs& attrs) {
  const std::string_view text = attrs.text("dtype", dtype_name(operand));
  const std::optional<DType> dtype = parse_dtype(text);
  HR_CHECK(dtype && (*dtype == DType::f32 || *dtype == operand), "{}: no {} result from {} operands", op, text,
           dtype_name(operand));
  return *dtype;
}

void check_accumulate(std::string_view op, const Attrs& attrs) {
  const std::string_view accumulate = attrs.text("accumulate", "always");
  HR_CHECK(accumulate == "carried" || accumulate == "always", "{}: accumulate is carried or always, not '{}'", op,
           accumulate);
}

// The operand's shape with its last dimension, which must be `from`, replaced by `to`.
Type replace_last(std::string_view op, const Type& operand, const Dim& from, const Dim& to, DType dtype) {
  HR_CHECK(operand.shape.back() == from, "{}: the operand's last dimension is not that of the weight", op);
  Type result{dtype, operand.shape};
  result.shape.back() = to;
  return result;
}

void check_same(std::string_view op, std::string_view what, const Type& found, const Type& wanted) {
  HR_CHECK(found.shape == wanted.shape && found.dtype == wanted.dtype, "{}: the {} does not have the result's type", op,
           what);
}

// p [rows, rank] beside the operand `left`, and q: [outs, rank], or [rank, ins] for linear_dx.
void check_low_rank(std::string_view op, std::span<const Type> inputs, size_t at, const Type& result,
                    bool q_transposed) {
  const Type &left = inputs[LinearInputs::left], &p = inputs[at], &q = inputs[at + 1];
  HR_CHECK(p.dtype == left.dtype && q.dtype == left.dtype, "{}: p and q have the operands' dtype", op);
  const bool rows =
      p.shape.size() == left.shape.size() && std::equal(p.shape.begin(), p.shape.end() - 1, left.shape.begin());
  HR_CHECK(rows && q.shape.size() == 2 && q.shape[q_transposed ? 1 : 0] == p.shape.back() &&
               q.shape[q_transposed ? 0 : 1] == result.shape.back(),
           "{}: p and q do not fit the operands", op);
}

// The result of linear, or of linear_dx.
Type product_type(std::string_view op, std::span<const Type> inputs, const Attrs& attrs, bool forward) {
  const LinearOperands at = linear_operands(attrs);
  check_count(op, inputs.size(), at.count);
  check_storage(op, inputs);
  const Type &left = inputs[LinearInputs::left], &weight = inputs[LinearInputs::weight];
  check_operands(op, left, weight, attrs, Right::weight);
  HR_CHECK(weight.shape.size() == 2, "{}: the weight has two dimensions, not {}", op, weight.shape.size());
  const Dim& outs = weight.shape[is_out_in(attrs) ? 0 : 1];
  const Dim& ins = weight.shape[is_out_in(attrs) ? 1 : 0];
  const DType dtype = output_dtype(op, left.dtype, attrs);
  const Type result = replace_last(op, left, forward ? ins : outs, forward ? outs : ins, dtype);
  if (at.bias != 0) check_same(op, "bias", inputs[at.bias], Type{DType::f32, {outs}});
  if (at.low_rank != 0) check_low_rank(op, inputs, at.low_rank, result, forward);
  if (at.last != 0) check_same(op, forward ? "residual" : "addend", inputs[at.last], result);
  return result;
}

Work product_work(const OpCall& call, const LinearShape& shape, int64_t wide, int64_t low_rank = 0) {
  const auto real = [](int64_t count) { return static_cast<double>(count); };
  Work work{2.0 * real(shape.rows) * (real(shape.outs) * real(shape.ins) + real(wide) * real(low_rank))};
  for (const ConcreteType& type : call.inputs) work.bytes += static_cast<double>(storage_bytes(type));
  for (const ConcreteType& type : call.outputs) work.bytes += static_cast<double>(storage_bytes(type));
  return work;
}

// The names of the inputs of linear and linear_dx: `left`, and what is added last.
OperandNames linear_operand_names(std::string_view left, std::string_view last, const Attrs& attrs) {
  const LinearOperands at = linear_operands(attrs);
  OperandNames names{left, "weight"};
  if (at.bias != 0) names.push_back("bias");
  if (at.low_rank != 0) names.insert(names.end(), {"p", "q"});
  if (at.last != 0) names.push_back(last);
  return names;
}

ProductShape plain_product(const LinearShape& shape) { return {shape.rows, shape.outs, shape.ins}; }

// Attribute "multiply" of a gradient's product, which the layer's attribute `from` holds.
void multiply_as(const Attrs& layer, std::string_view from, Attrs& attrs) {
  if (layer.has(from)) attrs.set("multiply", std::string(layer.text(from)));
}

Attrs layout_of(const Attrs& attrs) { return Attrs{{"layout", std::string(attrs.text("layout", "out_in"))}}; }

// y = x w^T [+ p q^T] [+ bias] [+ residual]
class Linear final : public Op {
 public:
  std::string_view name() const override { return "linear"; }
  OperandNames operands(const Attrs& attrs, size_t) const override {
    return linear_operand_names("x", "residual", attrs);
  }
  bool by_rows() const override { return true; }
  Product product() const override { return {ProductPart::output, ProductMatrices::one}; }
  ProductShape product_shape(const OpCall& call) const override { return plain_product(linear_shape(call)); }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    operand_rules::flag(name(), attrs, "batch_invariant");
    return {product_type(name(), inputs, attrs, true)};
  }

  std::vector<Alias> aliases(const Attrs& attrs, int inputs) const override {
    if (attrs.integer("residual") == 0) return {};
    return {{0, inputs - 1, false}};
  }
  Work work(const OpCall& call) const override {
    const LinearShape shape = linear_shape(call);
    return product_work(call, shape, shape.outs, low_rank_of(call));
  }
  CostClass cost_class() const override { return CostClass::gemm; }
  RecomputeClass recompute_class() const override { return RecomputeClass::linear; }
  std::vector<int> narrow_inputs(const Attrs& attrs) const override {
    const int p = static_cast<int>(linear_operands(attrs).low_rank);
    return p == 0 ? std::vector<int>{LinearInputs::left, LinearInputs::weight}
                  : std::vector<int>{LinearInputs::left, LinearInputs::weight, p, p + 1};
  }
  std::vector<int> rounded_inputs() const override { return {LinearInputs::weight}; }
  // With a residual the result joins the fp32 stream.
  std::string_view narrow_dtype(const Attrs& attrs) const override {
    return attrs.integer("residual") != 0 ? "f32" : "bf16";
  }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone) return;
    const LinearOperands at = linear_operands(context.attrs());
    HR_CHECK(at.low_rank == 0, "linear: low-rank products are joined after autodiff");
    const int bias = static_cast<int>(at.bias), residual = static_cast<int>(at.last);
    HR_CHECK(context.trains(LinearInputs::weight) || !context.wants(LinearInputs::weight),
             "linear: no gradient for a weight that is computed");
    if (residual != 0 && context.wants(residual)) context.contribute(residual, dy);
    if (at.bias != 0 && context.trains(bias)) train_bias(context, bias, dy);
    if (!context.trains(LinearInputs::weight) && !context.wants(LinearInputs::left)) return;
    const ValueId narrow = in_dtype(context, dy, context.build().type(context.input(LinearInputs::left)).dtype);
    if (context.trains(LinearInputs::weight)) train_weight(context, narrow);
    if (context.wants(LinearInputs::left)) pass_on(context, narrow);
  }

 private:
  // The products of the gradient run in x's dtype, whatever the result's.
  static ValueId in_dtype(VjpContext& context, ValueId value, DType dtype) {
    if (context.build().type(value).dtype == dtype) return value;
    return context.build().call("cast", {value}, {{"dtype", std::string(dtype_name(dtype))}}, Role::gradient);
  }

  static void train_bias(VjpContext& context, int bias, ValueId dy) {
    const Attrs attrs{{"accumulate", std::string(context.accumulate(bias))}};
    context.set_accumulator(bias,
                            context.build().call("bias_grad", {dy, context.accumulator(bias)}, attrs, Role::gradient));
  }

  static void train_weight(VjpContext& context, ValueId dy) {
    Attrs attrs = layout_of(context.attrs());
    attrs.set("accumulate", std::string(context.accumulate(LinearInputs::weight)));
    multiply_as(context.attrs(), kMultiplyDw, attrs);
    context.set_accumulator(LinearInputs::weight, context.build().call("linear_dw",
                                                                       {context.input(LinearInputs::left), dy,
                                                                        context.accumulator(LinearInputs::weight)},
                                                                       std::move(attrs), Role::gradient));
  }

  static void pass_on(VjpContext& context, ValueId dy) {
    const ValueId addend = context.addend(LinearInputs::left);
    Attrs attrs = layout_of(context.attrs());
    if (addend != kNone) attrs.set("addend", int64_t{1});
    multiply_as(context.attrs(), kMultiplyDx, attrs);
    const ValueId dx = context.build().call("linear_dx", {dy, context.input(LinearInputs::weight), addend},
                                            std::move(attrs), Role::gradient);
    if (addend != kNone)
      context.set_total(LinearInputs::left, dx);
    else
      context.contribute(LinearInputs::left, dx);
  }
};

// dx = dy w [+ p q] [+ addend]
class LinearDx final : public Op {
 public:
  std::string_view name() const override { return "linear_dx"; }
  OperandNames operands(const Attrs& attrs, size_t) const override {
    return linear_operand_names("dy", "addend", attrs);
  }
  bool by_rows() const override { return true; }
  Product product() const override { return {ProductPart::input_gradient, ProductMatrices::one}; }
  ProductShape product_shape(const OpCall& call) const override { return plain_product(linear_shape(call)); }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    return {product_type(name(), inputs, attrs, false)};
  }

  std::vector<Alias> aliases(const Attrs& attrs, int inputs) const override {
    if (attrs.integer("addend") == 0) return {};
    return {{0, inputs - 1, false}};
  }
  Work work(const OpCall& call) const override {
    const LinearShape shape = linear_shape(call);
    return product_work(call, shape, shape.ins, low_rank_of(call));
  }
  CostClass cost_class() const override { return CostClass::gemm; }
  RecomputeClass recompute_class() const override { return RecomputeClass::linear; }
  std::vector<int> rounded_inputs() const override { return {LinearInputs::weight}; }
};

// acc [+]= dy^T x, in w's layout
class LinearDw final : public Op {
 public:
  std::string_view name() const override { return "linear_dw"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x", "dy", "accumulator"}; }
  bool by_rows() const override { return true; }
  Product product() const override { return {ProductPart::weight_gradient, ProductMatrices::one}; }
  ProductShape product_shape(const OpCall& call) const override { return plain_product(linear_dw_shape(call)); }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    check_count(name(), inputs.size(), 3);
    check_dense(name(), inputs);
    const Type& x = inputs[LinearGradInputs::x];
    const Type& dy = inputs[LinearGradInputs::dy];
    check_operands(name(), x, dy, attrs, Right::operand);
    check_accumulate(name(), attrs);
    const std::vector<Dim> leading_x(x.shape.begin(), x.shape.end() - 1);
    const std::vector<Dim> leading_dy(dy.shape.begin(), dy.shape.end() - 1);
    HR_CHECK(leading_x == leading_dy, "linear_dw: x and dy have different rows");
    const Dim& outs = dy.shape.back();
    const Dim& ins = x.shape.back();
    const Type weight{DType::f32, is_out_in(attrs) ? std::vector<Dim>{outs, ins} : std::vector<Dim>{ins, outs}};
    check_same(name(), "accumulator", inputs[LinearGradInputs::accumulator], weight);
    return {inputs[LinearGradInputs::accumulator]};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, LinearGradInputs::accumulator, true}}; }
  Work work(const OpCall& call) const override { return product_work(call, linear_dw_shape(call), 0); }
  CostClass cost_class() const override { return CostClass::gemm; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

// acc [+]= column sums of dy
class BiasGrad final : public Op {
 public:
  std::string_view name() const override { return "bias_grad"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"dy", "accumulator"}; }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    check_count(name(), inputs.size(), 2);
    check_dense(name(), inputs);
    const Type& dy = inputs[0];
    HR_CHECK(!dy.shape.empty() && is_float(dy.dtype), "bias_grad: dy is an f32, bf16 or f16 tensor");
    check_accumulate(name(), attrs);
    check_same(name(), "accumulator", inputs[1], Type{DType::f32, {dy.shape.back()}});
    return {inputs[1]};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 1, true}}; }
  Work work(const OpCall& call) const override {
    Work work = Op::work(call);
    work.flops = static_cast<double>(element_count(call.inputs[0].dims));
    return work;
  }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

}  // namespace

void register_linear_ops(OpRegistry& registry) {
  registry.add(std::make_unique<Linear>());
  registry.add(std::make_unique<LinearDx>());
  registry.add(std::make_unique<LinearDw>());
  registry.add(std::make_unique<BiasGrad>());
}

}  // namespace headroom
