// Rules of fake quantisation (quantisation-aware training): weights rounded to a grid of 4 or 8 bits in groups within a
// row, and activations as 8-bit codes with a grid for each token. The arithmetic is in base/quantization_grid.h.
//
// Gradients pass straight through the rounding, and through the clamp only strictly between its bounds. For a weight,
// the elements where it clamps are set to zero in place in the gradient that the products have summed. For activations,
// the codes are kept for the backward pass: they show which elements were clamped, and products read their decoded
// values.
#include <memory>

#include "ir/vjp.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// Attributes "bits" and "group" of a weight's grid.
void require_grid(std::string_view op, const Attrs& attrs, const Type& weight) {
  const int64_t bits = attrs.integer("bits"), group = attrs.integer("group");
  HR_CHECK(bits == 4 || bits == 8, "{}: codes have 4 or 8 bits, not {}", op, bits);
  HR_CHECK(weight.shape.size() == 2, "{}: the weight is a matrix", op);
  const int64_t ins = constant_dim(op, "the length of a row", weight.shape[1]);
  HR_CHECK(group >= 1 && ins % group == 0, "{}: {} features in groups of {}", op, ins, group);
}

Attrs grid_attrs(const Attrs& attrs) { return {{"bits", attrs.integer("bits")}, {"group", attrs.integer("group")}}; }

// (weight) -> the weight rounded to its grid
class FakeQuantizeWeight final : public Op {
 public:
  std::string_view name() const override { return "fake_quantize_weight"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"weight"}; }
  OpKind kind() const override { return OpKind::weight_rounding; }
  std::string_view narrow_dtype(const Attrs&) const override { return "bf16"; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1);
    require_float(name(), "the weight", inputs[0]);
    require_grid(name(), attrs, inputs[0]);
    return {computed(inputs[0], float_attr(name(), attrs, inputs[0].dtype))};
  }

  void vjp(VjpContext& context) const override {
    if (!context.trains(0)) return;
    context.set_accumulator(
        0, context.build().call("fake_quantize_weight_grad", {context.accumulator(0), context.input(0)},
                                grid_attrs(context.attrs()), Role::gradient));
  }
};

// (gradient, weight) -> the gradient, set to 0 where the weight's code was clamped
class FakeQuantizeWeightGrad final : public Op {
 public:
  std::string_view name() const override { return "fake_quantize_weight_grad"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"accumulator", "weight"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 2);
    require_float(name(), "the weight", inputs[1]);
    require_grid(name(), attrs, inputs[1]);
    require_type(name(), "the gradient", inputs[0], computed(inputs[1], DType::f32));
    return {inputs[0]};
  }
  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, true}}; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

// The types of the codes and the grid of x: i8 with x's shape, and f32 scale and zero code for each token.
Type codes_type(const Type& x) { return computed(x, DType::i8); }
Type grid_type(const Type& x) {
  Type grid = computed(x, DType::f32);
  grid.shape.back() = Dim::of(2);
  return grid;
}

// (x) -> codes, grid
class QuantizeTokens final : public Op {
 public:
  std::string_view name() const override { return "quantize_tokens"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x"}; }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1);
    require_float(name(), "x", inputs[0], 2);
    constant_dim(name(), "the number of features", inputs[0].shape.back());
    return {codes_type(inputs[0]), grid_type(inputs[0])};
  }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone || !context.wants(0)) return;
    const DType dtype = context.build().type(context.input(0)).dtype;
    Attrs attrs;
    if (dtype != context.build().type(dy).dtype) attrs.set("dtype", std::string(dtype_name(dtype)));
    context.contribute(
        0, context.build().call("quantize_tokens_grad", {dy, context.output(0)}, std::move(attrs), Role::gradient));
  }
};

// (codes, grid) -> the decoded values. Attribute "dtype": f32 by default.
class DequantizeTokens final : public Op {
 public:
  std::string_view name() const override { return "dequantize_tokens"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"codes", "grid"}; }
  OpKind kind() const override { return OpKind::decoding; }
  bool by_rows() const override { return true; }
  std::string_view narrow_dtype(const Attrs&) const override { return "bf16"; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 2);
    require_type(name(), "codes", inputs[0], codes_type(inputs[0]));
    HR_CHECK(inputs[0].shape.size() >= 2, "dequantize_tokens: codes have two dimensions or more");
    require_type(name(), "grid", inputs[1], grid_type(inputs[0]));
    return {computed(inputs[0], float_attr(name(), attrs, DType::f32))};
  }

  // The cotangent of the codes is that of the decoded values.
  void vjp(VjpContext& context) const override {
    if (const ValueId dy = context.cotangent(0); dy != kNone) context.contribute(0, dy);
  }
};

// (dy, codes) -> dy, 0 where a code is the smallest or the largest. Attribute "dtype" is dx's; if absent, it is dy's.
class QuantizeTokensGrad final : public Op {
 public:
  std::string_view name() const override { return "quantize_tokens_grad"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"dy", "codes"}; }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 2);
    require_float(name(), "dy", inputs[0], 2);
    require_type(name(), "codes", inputs[1], codes_type(inputs[0]));
    return {computed(inputs[0], float_attr(name(), attrs, inputs[0].dtype))};
  }
  std::vector<Alias> aliases(const Attrs& attrs, int) const override {
    if (attrs.has("dtype")) return {};
    return {{0, 0, false}};
  }
};

}  // namespace

void register_fake_quantize_ops(OpRegistry& registry) {
  registry.add(std::make_unique<FakeQuantizeWeight>());
  registry.add(std::make_unique<FakeQuantizeWeightGrad>());
  registry.add(std::make_unique<QuantizeTokens>());
  registry.add(std::make_unique<DequantizeTokens>());
  registry.add(std::make_unique<QuantizeTokensGrad>());
}

}  // namespace headroom
