// Rules of the layer norm (Ba et al. 2016) and its gradient.
#include <memory>

#include "ir/vjp.h"
#include "ops/layer_norm/operands.h"
#include "ops/layer_norm/trained.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"
#include "ops/stream/row_chunks.h"

namespace headroom {
namespace {

using namespace operand_rules;

void require_eps(std::string_view op, const Attrs& attrs) {
  HR_CHECK(attrs.real("eps", -1) >= 0, "{}: eps is a number of at least 0", op);
}

// y = (x - mean) * rsqrt(variance + eps) * w + b over the last dimension
class LayerNorm final : public Op {
 public:
  std::string_view name() const override { return "layer_norm"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x", "weight", "bias"}; }
  OpKind kind() const override { return OpKind::norm; }
  bool by_rows() const override { return true; }
  // With attribute "stream" 1 the result joins the fp32 residual stream.
  std::string_view narrow_dtype(const Attrs& attrs) const override {
    return attrs.integer("stream") != 0 ? "f32" : "bf16";
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 3);
    require_eps(name(), attrs);
    const Type& x = inputs[LayerNormInputs::x];
    require_float(name(), "x", x);
    require_whole(name(), "w", inputs[LayerNormInputs::weight], DType::f32, {x.shape.back()});
    require_whole(name(), "b", inputs[LayerNormInputs::bias], DType::f32, {x.shape.back()});
    return {computed(x, float_attr(name(), attrs, x.dtype))};
  }

  std::vector<Alias> aliases(const Attrs& attrs, int) const override {
    return attrs.has("dtype") ? std::vector<Alias>{} : std::vector<Alias>{{0, LayerNormInputs::x, false}};
  }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    const bool wanted = context.wants(LayerNormInputs::x);
    const int64_t train = (context.trains(LayerNormInputs::weight) ? kTrainsWeight : 0) |
                          (context.trains(LayerNormInputs::bias) ? kTrainsBias : 0);
    if (dy == kNone || (train == 0 && !wanted)) return;
    const ValueId addend = wanted ? context.addend(LayerNormInputs::x) : kNone;
    Attrs attrs{{"eps", context.attrs().real("eps")}, {"train", train}, {"addend", int64_t{addend != kNone}}};
    std::vector<ValueId> inputs{context.input(LayerNormInputs::x), context.input(LayerNormInputs::weight), dy};
    if (train & kTrainsWeight) attrs.set("accumulate", std::string(context.accumulate(LayerNormInputs::weight)));
    if (train & kTrainsBias) attrs.set("accumulate_bias", std::string(context.accumulate(LayerNormInputs::bias)));
    if (train & kTrainsWeight) inputs.push_back(context.accumulator(LayerNormInputs::weight));
    if (train & kTrainsBias) inputs.push_back(context.accumulator(LayerNormInputs::bias));
    inputs.push_back(addend);
    const std::vector<ValueId> results =
        context.build().append("layer_norm_grad", std::move(inputs), std::move(attrs), Role::gradient);
    if (wanted) context.set_total(LayerNormInputs::x, results[0]);
    if (train & kTrainsWeight) context.set_accumulator(LayerNormInputs::weight, results[1]);
    if (train & kTrainsBias) context.set_accumulator(LayerNormInputs::bias, results.back());
  }
};

// dx = dL/dx [+ addend]; acc_w += dL/dw; acc_b += dL/db
class LayerNormGrad final : public Op {
 public:
  std::string_view name() const override { return "layer_norm_grad"; }
  OperandNames operands(const Attrs& attrs, size_t) const override {
    OperandNames names{"x", "weight", "dy"};
    names.insert(names.end(), static_cast<size_t>(trained_count(attrs)), "accumulator");
    if (attrs.integer("addend") != 0) names.push_back("addend");
    return names;
  }
  OpKind kind() const override { return OpKind::norm; }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    const int accumulators = trained_count(attrs);
    const bool addend = flag(name(), attrs, "addend");
    HR_CHECK(attrs.integer("train") >= 0 && attrs.integer("train") <= 3, "layer_norm_grad: train is 0 to 3");
    require_inputs(name(), inputs, LayerNormGradInputs::optional + static_cast<size_t>(accumulators) + size_t{addend});
    require_eps(name(), attrs);
    require_accumulate(name(), attrs);
    require_accumulate(name(), attrs, "accumulate_bias");
    const Type& x = inputs[LayerNormGradInputs::x];
    require_float(name(), "x", x);
    require_whole(name(), "w", inputs[LayerNormGradInputs::weight], DType::f32, {x.shape.back()});
    require_float_like(name(), "dy", inputs[LayerNormGradInputs::dy], x);
    std::vector<Type> results{computed(x, x.dtype)};
    if (addend) require_type(name(), "the addend", inputs.back(), results[0]);
    for (int i = 0; i < accumulators; ++i) {
      const Type& acc = inputs[LayerNormGradInputs::optional + static_cast<size_t>(i)];
      require_whole(name(), "the accumulator", acc, DType::f32, {x.shape.back()});
      results.push_back(acc);
    }
    return results;
  }

  std::vector<Alias> aliases(const Attrs& attrs, int inputs) const override {
    std::vector<Alias> aliases;
    for (int i = 0; i < trained_count(attrs); ++i) aliases.push_back({1 + i, LayerNormGradInputs::optional + i, true});
    if (attrs.integer("addend") != 0) aliases.push_back({0, inputs - 1, false});
    aliases.push_back({0, LayerNormGradInputs::dy, false});
    return aliases;
  }
};

}  // namespace

void register_layer_norm_ops(OpRegistry& registry) {
  registry.add(std::make_unique<LayerNorm>());
  registry.add(std::make_unique<LayerNormGrad>());
}

}  // namespace headroom
