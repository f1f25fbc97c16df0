// Rules of draw_labels: (x, weight, labels, hyper, [bias]) -> the labels of a pass. x, weight and bias are those of the
// loss (ops/linear_cross_entropy), with its attributes "layout", "softcap", "shift", "bias" and "chunk".
//
// If the step's scalar kDrawnLabels is not 0, each label that a row predicts is drawn from the softmax of its logits:
// the first entry at which the sum of the probabilities exceeds a number in (0, 1), which is a function of the run's
// seed, the step, the row of the global batch and the position (draw.h). Labels of -100, and those that no row
// predicts, stay. If it is 0, all labels stay.
//
// Attribute "interval" n: of n + 1 passes one draws labels, and a device that reads the scalar before it multiplies
// saves the others' product, so that work() is the mean; 0: the product is always computed.
#include <memory>

#include "base/error.h"
#include "ops/draw_labels/shape.h"
#include "ops/registry.h"
#include "ops/step_scalars.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

class DrawLabels final : public Op {
 public:
  std::string_view name() const override { return "draw_labels"; }
  OperandNames operands(const Attrs& attrs, size_t) const override {
    OperandNames names{"x", "weight", "labels", "hyper"};
    if (attrs.integer("bias") != 0) names.push_back("bias");
    return names;
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    const bool bias = flag(name(), attrs, "bias");
    require_inputs(name(), inputs, size_t{4} + size_t{bias});
    const std::string_view layout = attrs.text("layout", "out_in");
    HR_CHECK(layout == "out_in" || layout == "in_out", "{}: layout is out_in or in_out, not '{}'", name(), layout);
    for (const char* const attr : {"interval", "chunk"})
      HR_CHECK(attrs.integer(attr) >= 0, "{}: {} is {}", name(), attr, attrs.integer(attr));
    HR_CHECK(attrs.real("softcap", 0) >= 0, "{}: softcap is {}", name(), attrs.real("softcap", 0));
    const Type &x = inputs[DrawInputs::x], &w = inputs[DrawInputs::weight];
    require_float(name(), "x", x, 2);
    HR_CHECK(w.shape.size() == 2 && (x.dtype == w.dtype || w.dtype == DType::f32), "{}: no product of {} and {}",
             name(), dtype_name(x.dtype), dtype_name(w.dtype));
    const size_t ins = layout == "out_in" ? 1 : 0;
    HR_CHECK(x.shape.back() == w.shape[ins], "{}: x's last dimension is not that of the weight", name());
    const std::vector<Dim> leading(x.shape.begin(), x.shape.end() - 1);
    require_whole(name(), "the label tensor", inputs[DrawInputs::labels], DType::i32, leading);
    require_whole(name(), "hyper", inputs[DrawInputs::hyper], DType::f32, {Dim::of(kHyperCount)});
    if (bias) require_whole(name(), "the bias", inputs[DrawInputs::bias], DType::f32, {w.shape[1 - ins]});
    return {computed(inputs[DrawInputs::labels], DType::i32)};
  }

  // One product; the softmax counts as ten operations per logit.
  Work work(const OpCall& call) const override {
    const LossShape s = loss_shape(call);
    const double passes = 1 + static_cast<double>(call.attrs.integer("interval"));
    const double logits = static_cast<double>(s.rows) * static_cast<double>(s.vocabulary) / passes;
    const auto chunks = static_cast<double>((s.rows + s.chunk - 1) / s.chunk);
    const auto weight = static_cast<double>(storage_bytes(call.inputs[DrawInputs::weight]));
    const auto labels = static_cast<double>(2 * storage_bytes(call.outputs[0]));
    return {logits * (2.0 * static_cast<double>(s.hidden) + 10.0), logits * 12 + chunks * weight / passes + labels};
  }
  ProductShape product_shape(const OpCall& call) const override {
    const LossShape s = loss_shape(call);
    return {s.chunk, s.vocabulary, s.hidden};
  }
  CostClass cost_class() const override { return CostClass::logits; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

}  // namespace

void register_draw_labels_ops(OpRegistry& registry) { registry.add(std::make_unique<DrawLabels>()); }

}  // namespace headroom
