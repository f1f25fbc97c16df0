// Rules of the root-mean-square norm (Zhang and Sennrich 2019, as in Llama: weight times normalised) and its gradient.
//
// The weight is as long as the last dimension, or its length divides it: then each run of that length is normalised
// separately. Attribute "unit" 1: the weight is stored minus one (Gemma). Attribute "narrow" 1 of the gradient, with x
// in f32: its last output is dx rounded to bf16. Attribute "residual" 1 of the norm: the last input is added to y after
// y was rounded to its type.
#include <memory>

#include "ir/vjp.h"
#include "ops/registry.h"
#include "ops/rms_norm/operands.h"
#include "ops/rms_norm/rows.h"
#include "ops/stream/operand_rules.h"
#include "ops/stream/row_chunks.h"

namespace headroom {
namespace {

using namespace operand_rules;

void require_eps(std::string_view op, const Attrs& attrs) {
  HR_CHECK(attrs.real("eps", -1) >= 0, "{}: eps is a number of at least 0", op);
}

void require_weight(std::string_view op, const Type& w, const Type& x) {
  HR_CHECK(w.shape.size() == 1, "{}: w has {} dimensions, not 1", op, w.shape.size());
  require_whole(op, "w", w, DType::f32, {w.shape[0]});
  if (w.shape[0] == x.shape.back()) return;
  const int64_t width = constant_dim(op, "the width of x", x.shape.back());
  const int64_t run = constant_dim(op, "the length of w", w.shape[0]);
  HR_CHECK(width % run == 0, "{}: a weight of {} channels does not divide rows of {}", op, run, width);
}

// Attribute "unit" of the norm, for the gradient node.
void copy_unit(const Attrs& from, Attrs& to) {
  if (from.integer("unit") != 0) to.set("unit", int64_t{1});
}

// y = x * rsqrt(mean(x^2) + eps) * w over the last dimension [+ residual]
class RmsNorm final : public Op {
 public:
  std::string_view name() const override { return "rms_norm"; }
  OperandNames operands(const Attrs& attrs, size_t) const override {
    OperandNames names{"x", "weight"};
    if (attrs.integer("residual") != 0) names.push_back("residual");
    return names;
  }
  OpKind kind() const override { return OpKind::norm; }
  bool by_rows() const override { return true; }
  // With attribute "stream" 1 the result joins the fp32 stream.
  std::string_view narrow_dtype(const Attrs& attrs) const override {
    return attrs.integer("stream") != 0 ? "f32" : "bf16";
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    const bool residual = flag(name(), attrs, "residual");
    require_inputs(name(), inputs, residual ? 3 : 2);
    require_eps(name(), attrs);
    const Type& x = inputs[RmsNormInputs::x];
    require_float(name(), "x", x);
    require_weight(name(), inputs[RmsNormInputs::weight], x);
    flag(name(), attrs, "unit");
    const Type y = computed(x, float_attr(name(), attrs, x.dtype));
    if (residual) require_type(name(), "the residual", inputs[RmsNormInputs::residual], y);
    return {y};
  }

  std::vector<Alias> aliases(const Attrs& attrs, int) const override {
    std::vector<Alias> aliases;
    if (attrs.integer("residual") != 0) aliases.push_back({0, RmsNormInputs::residual, false});
    if (!attrs.has("dtype")) aliases.push_back({0, RmsNormInputs::x, false});
    return aliases;
  }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    HR_CHECK(context.attrs().integer("residual") == 0, "rms_norm: residuals are joined after autodiff");
    const bool train = context.trains(RmsNormInputs::weight);
    const bool wanted = context.wants(RmsNormInputs::x);
    if (dy == kNone || (!train && !wanted)) return;
    const ValueId addend = wanted ? context.addend(RmsNormInputs::x) : kNone;
    Attrs attrs{{"eps", context.attrs().real("eps")}, {"train", int64_t{train}}, {"addend", int64_t{addend != kNone}}};
    copy_unit(context.attrs(), attrs);
    if (train) attrs.set("accumulate", std::string(context.accumulate(RmsNormInputs::weight)));
    const ValueId acc = train ? context.accumulator(RmsNormInputs::weight) : kNone;
    const std::vector<ValueId> results = context.build().append(
        "rms_norm_grad", {context.input(RmsNormInputs::x), context.input(RmsNormInputs::weight), dy, acc, addend},
        std::move(attrs), Role::gradient);
    if (wanted) context.set_total(RmsNormInputs::x, results[0]);
    if (train) context.set_accumulator(RmsNormInputs::weight, results[1]);
  }
};

// dx = dL/dx [+ addend]; acc += dL/dw
class RmsNormGrad final : public Op {
 public:
  std::string_view name() const override { return "rms_norm_grad"; }
  OperandNames operands(const Attrs& attrs, size_t) const override {
    OperandNames names{"x", "weight", "dy"};
    if (attrs.integer("train") != 0) names.push_back("accumulator");
    if (attrs.integer("addend") != 0) names.push_back("addend");
    return names;
  }
  OpKind kind() const override { return OpKind::norm; }
  bool writes_narrow_copy() const override { return true; }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    const bool train = flag(name(), attrs, "train");
    const bool addend = flag(name(), attrs, "addend");
    require_inputs(name(), inputs, 3 + size_t{train} + size_t{addend});
    require_eps(name(), attrs);
    require_accumulate(name(), attrs);
    const Type& x = inputs[RmsNormGradInputs::x];
    require_float(name(), "x", x);
    require_weight(name(), inputs[RmsNormGradInputs::weight], x);
    flag(name(), attrs, "unit");
    require_float_like(name(), "dy", inputs[RmsNormGradInputs::dy], x);
    std::vector<Type> results{computed(x, x.dtype)};
    if (addend) require_type(name(), "the addend", inputs.back(), results[0]);
    if (train) {
      require_whole(name(), "the accumulator", inputs[RmsNormGradInputs::accumulator], DType::f32,
                    inputs[RmsNormGradInputs::weight].shape);
      results.push_back(inputs[RmsNormGradInputs::accumulator]);
    }
    if (flag(name(), attrs, "narrow")) {
      HR_CHECK(x.dtype == DType::f32, "{}: x is {} and narrow already", name(), dtype_name(x.dtype));
      results.push_back(computed(x, DType::bf16));
    }
    return results;
  }

  std::vector<Alias> aliases(const Attrs& attrs, int inputs) const override {
    std::vector<Alias> aliases;
    if (attrs.integer("train") != 0) aliases.push_back({1, RmsNormGradInputs::accumulator, true});
    if (attrs.integer("addend") != 0) aliases.push_back({0, inputs - 1, false});
    aliases.push_back({0, RmsNormGradInputs::dy, false});
    return aliases;
  }
};

}  // namespace

void register_rms_norm_ops(OpRegistry& registry) {
  registry.add(std::make_unique<RmsNorm>());
  registry.add(std::make_unique<RmsNormGrad>());
}

}  // namespace headroom
