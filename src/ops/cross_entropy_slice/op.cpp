// Rules of the fused output projection and cross entropy for a slice of the vocabulary at a time: the sums of each
// row's softmax, slice by slice; the loss of all rows; the gradient, slice by slice. Attributes of the first and the
// last of these, beside the slice's (ir/row_slice.h), which selects rows of the weight and of its accumulator:
//   "softcap" c > 0: a logit l becomes c tanh(l / c) before the softmax.
//   "shift" 0: position t predicts labels[t], not labels[t + 1].
// If w is f32 and x is narrow, w is rounded to x's dtype when it is multiplied.
// Source: Wijmans et al., "Cut your losses in large-vocabulary language models", 2024, section 4.
#include <memory>

#include "base/error.h"
#include "ops/cross_entropy_slice/shape.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

std::vector<Dim> leading_of(const Type& x) { return {x.shape.begin(), x.shape.end() - 1}; }

Type softmax_type(const Type& labels) {
  Type type = computed(labels, DType::f64);
  type.shape.push_back(Dim::of(kRowSoftmaxFields));
  return type;
}

void check_operands(std::string_view op, std::span<const Type> inputs, const Attrs& attrs) {
  HR_CHECK(attrs.text("layout", "out_in") == "out_in", "{}: the weight is stored out_in", op);
  HR_CHECK(attrs.real("softcap", 0) >= 0, "{}: softcap is {}", op, attrs.real("softcap", 0));
  HR_CHECK(attrs.integer("shift", 1) == 0 || attrs.integer("shift", 1) == 1, "{}: shift is 0 or 1", op);
  const Type &x = inputs[SliceInputs::x], &w = inputs[SliceInputs::weight];
  require_float(op, "x", x, 2);
  HR_CHECK(w.shape.size() == 2 && (x.dtype == w.dtype || w.dtype == DType::f32), "{}: no product of {} and {}", op,
           dtype_name(x.dtype), dtype_name(w.dtype));
  HR_CHECK(x.shape.back() == w.shape[1], "{}: x's last dimension is not that of the weight", op);
  require_whole(op, "the label tensor", inputs[SliceInputs::labels], DType::i32, leading_of(x));
}

class SliceOp : public Op {
 public:
  ProductShape product_shape(const OpCall& call) const override {
    const LossShape s = loss_shape(call);
    return {cut_slice(s).rows, s.vocabulary, s.hidden};
  }
  CostClass cost_class() const override { return CostClass::logits; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
  std::vector<int> rounded_inputs() const override { return {SliceInputs::weight}; }

 protected:
  // `products`: the number of products of rows * entries * hidden multiply-adds. The softmax counts as ten operations
  // per logit.
  Work work_of(const OpCall& call, int products) const {
    const LossShape s = loss_shape(call);
    const double logits = static_cast<double>(s.rows) * static_cast<double>(s.vocabulary);
    return {logits * (2.0 * products * static_cast<double>(s.hidden) + 10.0), Op::work(call).bytes};
  }
};

// softmax [+]= the slice's logits; the first slice has no softmax.
class CrossEntropySlice final : public SliceOp {
 public:
  std::string_view name() const override { return "cross_entropy_slice"; }
  OperandNames operands(const Attrs&, size_t inputs) const override {
    OperandNames names{"x", "weight", "labels"};
    if (inputs > names.size()) names.push_back("softmax");
    return names;
  }
  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 3, 4);
    check_operands(name(), inputs, attrs);
    const Type softmax = softmax_type(inputs[SliceInputs::labels]);
    if (inputs.size() > SliceInputs::softmax) require_type(name(), "the softmax", inputs.back(), softmax);
    return {softmax};
  }
  std::vector<Alias> aliases(const Attrs&, int inputs) const override {
    if (inputs <= SliceInputs::softmax) return {};
    return {{0, SliceInputs::softmax, true}};
  }
  Work work(const OpCall& call) const override { return work_of(call, 1); }
};

// dx [+]= dlogits w, w_acc [+]= dlogits^T x; dx is f32, and the first slice has none.
class CrossEntropySliceGrad final : public SliceOp {
 public:
  std::string_view name() const override { return "cross_entropy_slice_grad"; }
  OperandNames operands(const Attrs& attrs, size_t) const override {
    OperandNames names{"x", "weight", "labels", "softmax", "scale"};
    if (attrs.integer("adds") != 0) names.push_back("dx");
    if (attrs.integer("train_weight") != 0) names.push_back("accumulator");
    return names;
  }
  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    const bool adds = flag(name(), attrs, "adds"), trains = flag(name(), attrs, "train_weight");
    require_inputs(name(), inputs, size_t{5} + size_t{adds} + size_t{trains});
    check_operands(name(), inputs, attrs);
    require_accumulate(name(), attrs);
    require_type(name(), "the softmax", inputs[SliceGradInputs::softmax], softmax_type(inputs[SliceInputs::labels]));
    require_whole(name(), "the scale", inputs[SliceGradInputs::scale], DType::f32, {Dim::of(1)});
    std::vector<Type> outputs{computed(inputs[SliceInputs::x], DType::f32)};
    if (adds) require_type(name(), "dx", inputs[SliceGradInputs::dx], outputs.front());
    if (!trains) return outputs;
    require_type(name(), "the weight's accumulator", inputs.back(), computed(inputs[SliceInputs::weight], DType::f32));
    outputs.push_back(inputs.back());
    return outputs;
  }
  std::vector<Alias> aliases(const Attrs& attrs, int inputs) const override {
    std::vector<Alias> aliases;
    if (attrs.integer("adds") != 0) aliases.push_back({0, SliceGradInputs::dx, true});
    if (attrs.integer("train_weight") != 0) aliases.push_back({1, inputs - 1, true});
    return aliases;
  }
  // The logits are computed again.
  Work work(const OpCall& call) const override {
    return work_of(call, call.attrs.integer("train_weight") != 0 ? 3 : 2);
  }
};

// losses [+]= (sum of -log softmax[target], number of targets, with "hits" the number of targets that have the largest
// logit of their row). "vocabulary": the number of entries of all slices.
class CrossEntropySum final : public Op {
 public:
  std::string_view name() const override { return "cross_entropy_sum"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"softmax", "labels", "losses"}; }
  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 3);
    require_accumulate(name(), attrs);
    HR_CHECK(attrs.integer("vocabulary") >= 1, "{}: a vocabulary of {}", name(), attrs.integer("vocabulary"));
    const Type& labels = inputs[SliceSumInputs::labels];
    HR_CHECK(labels.dtype == DType::i32, "{}: labels are i32", name());
    require_type(name(), "the softmax", inputs[SliceSumInputs::softmax], softmax_type(labels));
    require_whole(name(), "the accumulator", inputs[SliceSumInputs::losses], DType::f64,
                  {Dim::of(flag(name(), attrs, "hits") ? 3 : 2)});
    return {inputs[SliceSumInputs::losses]};
  }
  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, SliceSumInputs::losses, true}}; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

}  // namespace

void register_cross_entropy_slice_ops(OpRegistry& registry) {
  registry.add(std::make_unique<CrossEntropySlice>());
  registry.add(std::make_unique<CrossEntropySliceGrad>());
  registry.add(std::make_unique<CrossEntropySum>());
}

}  // namespace headroom
