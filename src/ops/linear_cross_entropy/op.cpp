// Rules of the output projection fused with the next-token cross entropy, and of its gradient. If w is f32 and x is
// narrow, w is rounded to x's dtype when it is multiplied. Attributes:
//   "softcap" c > 0: a logit l becomes c tanh(l / c) before the softmax.
//   "shift" 0: position t predicts labels[t], not labels[t + 1].
//   "bias" 1: an f32[vocabulary] after the other inputs is added to the logits.
//   "hits" 1: the accumulator has a third element, the number of targets that have the largest logit of their row.
//   "logits" "bf16" of the gradient, for x in bf16 without bias and hits: a GPU keeps the logits in bf16; a CPU ignores
//   it.
#include <memory>

#include "base/error.h"
#include "ir/vjp.h"
#include "ops/linear_cross_entropy/shape.h"
#include "ops/linear_cross_entropy/tiled.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

void check_accumulate(std::string_view op, const Attrs& attrs, std::string_view attr) {
  const std::string_view value = attrs.text(attr, "always");
  HR_CHECK(value == "carried" || value == "always", "{}: {} is carried or always, not '{}'", op, attr, value);
}

void check_exact(std::string_view op, std::string_view what, const Type& found, const Type& wanted) {
  HR_CHECK(found.dtype == wanted.dtype && found.shape == wanted.shape, "{}: {} has the wrong type", op, what);
}

// Checks x, w and labels, the first inputs of both ops.
void check_operands(std::string_view op, std::span<const Type> inputs, const Attrs& attrs) {
  for (const Type& type : inputs) HR_CHECK(type.storage.dense(), "{} takes dense inputs", op);
  const std::string_view layout = attrs.text("layout", "out_in");
  HR_CHECK(layout == "out_in" || layout == "in_out", "{}: layout is out_in or in_out, not '{}'", op, layout);
  HR_CHECK(attrs.integer("chunk") >= 0, "{}: a chunk of {} rows", op, attrs.integer("chunk"));
  for (const auto& [attr, usual] : {std::pair{"shift", 1}, {"bias", 0}, {"train_bias", 0}, {"hits", 0}}) {
    const int64_t value = attrs.integer(attr, usual);
    HR_CHECK(value == 0 || value == 1, "{}: {} is 0 or 1, not {}", op, attr, value);
  }
  HR_CHECK(attrs.real("softcap", 0) >= 0, "{}: softcap is {}", op, attrs.real("softcap", 0));
  const Type& x = inputs[LossInputs::x];
  const Type& w = inputs[LossInputs::weight];
  HR_CHECK(x.shape.size() >= 2 && w.shape.size() == 2, "{}: x is [..., hidden] and w has two dimensions", op);
  HR_CHECK(operand_rules::is_float(x.dtype) && (x.dtype == w.dtype || w.dtype == DType::f32),
           "{}: no product of {} and {}", op, dtype_name(x.dtype), dtype_name(w.dtype));
  HR_CHECK(x.shape.back() == w.shape[is_out_in(attrs) ? 1 : 0], "{}: x's last dimension is not that of the weight", op);
  const std::vector<Dim> leading(x.shape.begin(), x.shape.end() - 1);
  check_exact(op, "the label tensor", inputs[LossInputs::labels], Type{DType::i32, leading});
}

// The bias and, if it is trained, its accumulator are the last inputs.
void check_bias(std::string_view op, std::span<const Type> inputs, const Attrs& attrs) {
  const Type wanted{DType::f32, {inputs[LossInputs::weight].shape[is_out_in(attrs) ? 0 : 1]}};
  check_exact(op, "the bias", inputs[inputs.size() - 1 - (attrs.integer("train_bias") != 0 ? 1 : 0)], wanted);
  if (attrs.integer("train_bias") != 0) check_exact(op, "the bias's accumulator", inputs.back(), wanted);
}

Type loss_accumulator_type(const Attrs& attrs) { return {DType::f64, {Dim::of(attrs.integer("hits") != 0 ? 3 : 2)}}; }
Type scale_type() { return {DType::f32, {Dim::of(1)}}; }

// `products`: the number of products of rows * vocabulary * hidden multiply-adds. The softmax counts as ten operations
// per logit.
Work loss_work(const OpCall& call, int products) {
  const LossShape s = loss_shape(call);
  const double logits = static_cast<double>(s.rows) * static_cast<double>(s.vocabulary);
  Work work{logits * (2.0 * products * static_cast<double>(s.hidden) + 10.0), logits * (products == 1 ? 8.0 : 16.0)};
  for (const ConcreteType& type : call.inputs) work.bytes += static_cast<double>(storage_bytes(type));
  for (const ConcreteType& type : call.outputs) work.bytes += static_cast<double>(storage_bytes(type));
  return work;
}

// acc [+]= (sum of -log softmax(x w^T)[target], number of targets, with "hits" the number of hits)
class LinearCrossEntropy final : public Op {
 public:
  std::string_view name() const override { return "linear_cross_entropy"; }
  OperandNames operands(const Attrs& attrs, size_t inputs) const override {
    OperandNames names{"x", "weight", "labels", "losses"};
    const bool bias = attrs.integer("bias") != 0;
    if (inputs > names.size() + size_t{bias}) names.push_back("scale");
    if (bias) names.push_back("bias");
    return names;
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    const size_t bias = attrs.integer("bias") != 0 ? 1 : 0, count = inputs.size() - bias;
    HR_CHECK(inputs.size() >= bias && (count == LossInputs::scale || count == LossInputs::scale + 1),
             "linear_cross_entropy takes 4 or 5 inputs, not {}", count);
    check_operands(name(), inputs, attrs);
    check_accumulate(name(), attrs, "accumulate");
    check_exact(name(), "the accumulator", inputs[LossInputs::losses], loss_accumulator_type(attrs));
    if (bias != 0) check_bias(name(), inputs, attrs);
    if (count > LossInputs::scale) check_exact(name(), "the scale", inputs[LossInputs::scale], scale_type());
    return {inputs[LossInputs::losses]};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, LossInputs::losses, true}}; }
  Work work(const OpCall& call) const override { return loss_work(call, 1); }
  bool by_rows() const override { return true; }
  CostClass cost_class() const override { return CostClass::loss; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
  std::vector<int> narrow_inputs(const Attrs&) const override { return {LossInputs::x, LossInputs::weight}; }
  std::vector<int> rounded_inputs() const override { return {LossInputs::weight}; }

  // The loss is the root of differentiation: the gradient op computes loss and gradient in one pass over the logits and
  // replaces the forward node.
  void vjp(VjpContext& context) const override {
    const bool bias = context.attrs().integer("bias") != 0;
    HR_CHECK(operand(context.node(), "scale") != kNone,
             "linear_cross_entropy needs its scale input to be differentiated");
    const auto bias_at = static_cast<int>(context.node().inputs.size()) - 1;  // if there is one
    const bool trains = context.trains(LossInputs::weight);
    HR_CHECK(trains || !context.wants(LossInputs::weight),
             "linear_cross_entropy: no gradient for a weight that is computed");
    const bool trains_bias = bias && context.trains(bias_at);
    if (!trains && !trains_bias && !context.wants(LossInputs::x)) return;
    Attrs attrs{{"layout", std::string(context.attrs().text("layout", "out_in"))},
                {"chunk", context.attrs().integer("chunk")},
                {"loss_accumulate", std::string(context.attrs().text("accumulate", "always"))},
                {"train_weight", int64_t{trains}}};
    if (trains) attrs.set("accumulate", std::string(context.accumulate(LossInputs::weight)));
    if (context.attrs().has("softcap")) attrs.set("softcap", context.attrs().real("softcap"));
    if (context.attrs().has("shift")) attrs.set("shift", context.attrs().integer("shift"));
    if (context.attrs().has("hits")) attrs.set("hits", context.attrs().integer("hits"));
    if (bias) attrs.set("bias", int64_t{1});
    if (trains_bias)
      attrs.set("train_bias", int64_t{1}).set("accumulate_bias", std::string(context.accumulate(bias_at)));
    const std::vector<ValueId> results = context.build().append(
        "linear_cross_entropy_grad",
        {context.input(LossInputs::x), context.input(LossInputs::weight), context.input(LossInputs::labels),
         context.input(LossInputs::scale), context.input(LossInputs::losses),
         trains ? context.accumulator(LossInputs::weight) : kNone, bias ? context.input(bias_at) : kNone,
         trains_bias ? context.accumulator(bias_at) : kNone},
        std::move(attrs), Role::gradient);
    if (context.wants(LossInputs::x)) context.contribute(LossInputs::x, results[LossGradOutputs::dx]);
    // Losses that were added before have their own gradients, with the same scale.
    if (context.wants(LossInputs::losses)) context.contribute(LossInputs::losses, context.input(LossInputs::losses));
    if (trains) context.set_accumulator(LossInputs::weight, results[LossGradOutputs::accumulator]);
    if (trains_bias) context.set_accumulator(bias_at, results.back());
    context.replace_output(0, results[LossGradOutputs::losses]);
  }
};

// The same loss, and the gradient of scale * loss: dx = dlogits w, w_acc [+]= dlogits^T x.
class LinearCrossEntropyGrad final : public Op {
 public:
  std::string_view name() const override { return "linear_cross_entropy_grad"; }
  OperandNames operands(const Attrs& attrs, size_t) const override {
    OperandNames names{"x", "weight", "labels", "scale", "losses"};
    if (attrs.integer("train_weight") != 0) names.push_back("accumulator");
    if (attrs.integer("bias") != 0) names.push_back("bias");
    if (attrs.integer("train_bias") != 0) names.push_back("bias_accumulator");
    return names;
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    const bool trains = attrs.integer("train_weight") != 0;
    const bool bias = attrs.integer("bias") != 0, trains_bias = attrs.integer("train_bias") != 0;
    const size_t count = 5 + size_t{trains} + size_t{bias} + size_t{trains_bias};
    HR_CHECK(inputs.size() == count && bias >= trains_bias, "linear_cross_entropy_grad takes {} inputs, not {}", count,
             inputs.size());
    check_operands(name(), inputs, attrs);
    HR_CHECK(attrs.text("logits").empty() || takes_narrow_logits(inputs[LossGradInputs::x].dtype, attrs),
             "{}: logits in {} of x in {}", name(), attrs.text("logits"), dtype_name(inputs[LossGradInputs::x].dtype));
    check_accumulate(name(), attrs, "accumulate");
    check_accumulate(name(), attrs, "loss_accumulate");
    check_exact(name(), "the scale", inputs[LossGradInputs::scale], scale_type());
    check_exact(name(), "the loss accumulator", inputs[LossGradInputs::losses], loss_accumulator_type(attrs));
    std::vector<Type> outputs{Type{inputs[LossGradInputs::x].dtype, inputs[LossGradInputs::x].shape},
                              inputs[LossGradInputs::losses]};
    if (trains) {
      check_exact(name(), "the weight's accumulator", inputs[LossGradInputs::accumulator],
                  Type{DType::f32, inputs[LossGradInputs::weight].shape});
      outputs.push_back(inputs[LossGradInputs::accumulator]);
    }
    if (bias) check_bias(name(), inputs, attrs);
    if (trains_bias) outputs.push_back(inputs.back());
    return outputs;
  }

  std::vector<Alias> aliases(const Attrs& attrs, int inputs) const override {
    std::vector<Alias> aliases{{LossGradOutputs::losses, LossGradInputs::losses, true}};
    const bool trains = attrs.integer("train_weight") != 0;
    if (trains) aliases.push_back({LossGradOutputs::accumulator, LossGradInputs::accumulator, true});
    if (attrs.integer("train_bias") != 0) aliases.push_back({trains ? 3 : 2, inputs - 1, true});
    return aliases;
  }
  Work work(const OpCall& call) const override {
    return loss_work(call, call.attrs.integer("train_weight") != 0 ? 3 : 2);
  }
  CostClass cost_class() const override { return CostClass::loss_grad; }
  bool by_rows() const override { return true; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
  std::vector<int> rounded_inputs() const override { return {LossInputs::weight}; }
};

}  // namespace

void register_linear_cross_entropy_ops(OpRegistry& registry) {
  registry.add(std::make_unique<LinearCrossEntropy>());
  registry.add(std::make_unique<LinearCrossEntropyGrad>());
}

}  // namespace headroom
