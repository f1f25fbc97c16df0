// Rules of weight-decomposed adapters (DoRA, Liu et al. 2024): the lengths of the adapted weight's rows, the product
// with rows of given lengths, and its gradient, to which the lengths are constants (section 4.3 of the paper).
#include <memory>

#include "ir/vjp.h"
#include "ops/dora/shape.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// (weight [outs, ins], a [rank, ins], b [outs, rank] [, into]) -> f32[outs]: the length of each row of
//   weight + factor * b a
// with sums in f32. The weight may be in blocks of codes. With `into` the result is written there.
class RowLengths final : public Op {
 public:
  std::string_view name() const override { return "row_lengths"; }
  OperandNames operands(const Attrs&, size_t inputs) const override {
    OperandNames names{"weight", "a", "b"};
    if (inputs > RowLengthsInputs::into) names.emplace_back("into");
    return names;
  }
  OpKind kind() const override { return OpKind::row_lengths; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    constexpr size_t kInto = RowLengthsInputs::into;
    HR_CHECK(inputs.size() == kInto || inputs.size() == kInto + 1, "row_lengths: {} inputs, not {} or {}",
             inputs.size(), kInto, kInto + 1);
    require_inputs(name(), inputs.subspan(1), 2, 3);
    HR_CHECK(attrs.has("factor"), "row_lengths: no factor");
    const Type &weight = inputs[RowLengthsInputs::weight], &a = inputs[RowLengthsInputs::a];
    require_float(name(), "the weight", weight, 2);
    HR_CHECK(weight.storage.dense() || weight.dtype == DType::f32, "row_lengths: codes of f32 elements");
    HR_CHECK(weight.shape.size() == 2 && !weight.shard, "row_lengths: the weight is a whole matrix");
    require_float(name(), "a", a, 2);
    HR_CHECK(a.shape.size() == 2 && a.shape[1] == weight.shape[1] && !a.shard, "row_lengths: a is [rank, ins], whole");
    require_whole(name(), "b", inputs[RowLengthsInputs::b], a.dtype, {weight.shape[0], a.shape[0]});
    const Type lengths{DType::f32, {weight.shape[0]}};
    if (inputs.size() > RowLengthsInputs::into) require_type(name(), "into", inputs[RowLengthsInputs::into], lengths);
    return {lengths};
  }
  std::vector<Alias> aliases(const Attrs&, int inputs) const override {
    constexpr int kInto = RowLengthsInputs::into;
    if (inputs <= kInto) return {};
    return {{0, kInto, true}};
  }
  // The weight is read once, a once for every few rows.
  Work work(const OpCall& call) const override {
    const RowLengthsShape shape = row_lengths_shape(call);
    const double elements = static_cast<double>(shape.outs) * static_cast<double>(shape.ins);
    const double rank = static_cast<double>(shape.rank);
    return {2 * elements * (rank + 2), static_cast<double>(storage_bytes(call.inputs[RowLengthsInputs::weight])) +
                                           elements * rank * sizeof(float) / kLengthRows};
  }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

// (z [..., outs], magnitude f32[outs], lengths f32[outs] [, bias f32[outs]] [, residual]) -> y
//   y = z * magnitude / lengths [+ bias] [+ residual]
// where the factor of a length of 0 is 0. Attributes "bias" and "residual" are 0 or 1; "dtype" is y's, z's by default.
class Magnitude final : public Op {
 public:
  std::string_view name() const override { return "magnitude"; }
  OperandNames operands(const Attrs& attrs, size_t) const override {
    const MagnitudeInputs at(attrs);
    OperandNames names{"z", "magnitude", "lengths"};
    if (at.bias != 0) names.emplace_back("bias");
    if (at.residual != 0) names.emplace_back("residual");
    return names;
  }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    flag(name(), attrs, "bias");
    flag(name(), attrs, "residual");
    const MagnitudeInputs at(attrs);
    require_inputs(name(), inputs, at.count);
    const Type& z = inputs[0];
    require_float(name(), "z", z, 2);
    const std::vector<Dim> row{z.shape.back()};
    require_whole(name(), "the magnitude", inputs[MagnitudeInputs::magnitude], DType::f32, row);
    require_whole(name(), "the lengths", inputs[MagnitudeInputs::lengths], DType::f32, row);
    if (at.bias != 0) require_whole(name(), "the bias", inputs[at.bias], DType::f32, row);
    const Type y = computed(z, float_attr(name(), attrs, z.dtype));
    if (at.residual != 0) require_type(name(), "the residual", inputs[at.residual], y);
    return {y};
  }
  std::vector<Alias> aliases(const Attrs& attrs, int) const override {
    const MagnitudeInputs at(attrs);
    if (at.residual != 0) return {{0, static_cast<int>(at.residual), false}};
    if (attrs.has("dtype")) return {};
    return {{0, 0, false}};
  }
  // With a residual the result joins the fp32 stream.
  std::string_view narrow_dtype(const Attrs& attrs) const override {
    return attrs.integer("residual") != 0 ? "f32" : "bf16";
  }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone) return;
    const MagnitudeInputs at(context.attrs());
    const int residual = static_cast<int>(at.residual), bias = static_cast<int>(at.bias);
    if (residual != 0 && context.wants(residual)) context.contribute(residual, dy);
    if (bias != 0 && context.trains(bias))
      context.set_accumulator(
          bias, context.build().call("bias_grad", {dy, context.accumulator(bias)},
                                     {{"accumulate", std::string(context.accumulate(bias))}}, Role::gradient));
    HR_CHECK(context.trains(1), "magnitude: the magnitude is not trained");
    const DType dtype = context.build().type(context.input(0)).dtype;
    Attrs attrs{{"accumulate", std::string(context.accumulate(1))}};
    if (dtype != context.build().type(dy).dtype) attrs.set("dtype", std::string(dtype_name(dtype)));
    const std::vector<ValueId> made = context.build().append(
        "magnitude_grad",
        {dy, context.input(MagnitudeInputs::z), context.input(MagnitudeInputs::magnitude),
         context.input(MagnitudeInputs::lengths), context.accumulator(MagnitudeInputs::magnitude)},
        std::move(attrs), Role::gradient);
    context.set_accumulator(1, made[1]);
    context.contribute(0, made[0]);
  }
};

// (dy, z, magnitude, lengths, accumulator) -> dz, accumulator'
//   dz = dy * magnitude / lengths; accumulator' = [accumulator +] the sum over rows of dy * z / lengths
// Attribute "dtype" is dz's, which is z's; if absent, it is also dy's.
class MagnitudeGrad final : public Op {
 public:
  std::string_view name() const override { return "magnitude_grad"; }
  OperandNames operands(const Attrs&, size_t) const override {
    return {"dy", "z", "magnitude", "lengths", "accumulator"};
  }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 5);
    require_accumulate(name(), attrs);
    const Type &dy = inputs[MagnitudeGradInputs::dy], &z = inputs[MagnitudeGradInputs::z];
    require_float(name(), "z", z, 2);
    require_float_like(name(), "dy", dy, z);
    const std::vector<Dim> row{z.shape.back()};
    for (const size_t vector : {MagnitudeGradInputs::magnitude, MagnitudeGradInputs::lengths})
      require_whole(name(), "a vector", inputs[vector], DType::f32, row);
    require_type(name(), "the accumulator", inputs[MagnitudeGradInputs::accumulator], Type{DType::f32, row});
    const Type dz = computed(z, float_attr(name(), attrs, dy.dtype));
    HR_CHECK(dz.dtype == z.dtype, "magnitude_grad: dz is {}, z is {}", dtype_name(dz.dtype), dtype_name(z.dtype));
    return {dz, inputs[MagnitudeGradInputs::accumulator]};
  }
  std::vector<Alias> aliases(const Attrs& attrs, int) const override {
    constexpr int kAccumulator = MagnitudeGradInputs::accumulator;
    if (attrs.has("dtype")) return {{1, kAccumulator, true}};
    return {{0, 0, false}, {1, kAccumulator, true}};
  }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

}  // namespace

void register_dora_ops(OpRegistry& registry) {
  registry.add(std::make_unique<RowLengths>());
  registry.add(std::make_unique<Magnitude>());
  registry.add(std::make_unique<MagnitudeGrad>());
}

}  // namespace headroom
