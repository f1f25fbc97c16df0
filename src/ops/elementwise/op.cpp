// The table of elementwise ops, and the rules that follow from it.
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "ir/vjp.h"
#include "ops/elementwise/table.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// Attribute "approximate" of gelu: none (default) or tanh.
Formula gelu(std::string_view op, const Attrs& attrs) {
  const std::string_view text = attrs.text("approximate", "none");
  HR_CHECK(text == "none" || text == "tanh", "{}: approximate is none or tanh, not '{}'", op, text);
  return text == "tanh" ? Formula::gelu_tanh : Formula::gelu;
}

// Attribute "activation" of swiglu: silu (default), gelu_tanh or gelu.
Formula gated(std::string_view op, const Attrs& attrs) {
  const std::string_view text = attrs.text("activation", "silu");
  if (text == "gelu_tanh") return Formula::gated_gelu_tanh;
  if (text == "gelu") return Formula::gated_gelu;
  HR_CHECK(text == "silu", "{}: activation is silu, gelu_tanh or gelu, not '{}'", op, text);
  return Formula::gated_silu;
}

Formula softcap(std::string_view op, const Attrs& attrs) {
  HR_CHECK(attrs.real("cap") > 0, "{}: cap is {}, not above 0", op, attrs.real("cap"));
  return Formula::softcap;
}

Formula scale(std::string_view op, const Attrs& attrs) {
  HR_CHECK(attrs.has("factor"), "{}: no factor", op);
  return Formula::scale;
}

template <auto Forward>
Formula gradient_of(std::string_view op, const Attrs& attrs) {
  return static_cast<Formula>(static_cast<int>(Forward(op, attrs)) + 1);
}

std::vector<ElementwiseRow> make_rows() {
  constexpr auto kInputs = SavedForGradient::inputs, kResults = SavedForGradient::results;
  constexpr auto kNothing = SavedForGradient::nothing;
  constexpr OpKind kActivation = OpKind::activation, kOther = OpKind::other;
  return {
      // Gaussian error linear unit (Hendrycks and Gimpel 2016)
      {"gelu", {"x"}, 1, kActivation, {{0, 0}}, gelu, "", "gelu_grad", kInputs},
      {"gelu_grad", {"x", "dy"}, 1, kActivation, {{0, 1}, {0, 0}}, gradient_of<gelu>, "", "", kNothing},
      // gated unit (Shazeer 2020)
      {"swiglu", {"gate", "up"}, 1, kActivation, {{0, 0}, {0, 1}}, gated, "", "swiglu_grad", kInputs},
      {"swiglu_grad",
       {"gate", "up", "dy"},
       2,
       kActivation,
       {{0, 0}, {0, 2}, {1, 1}},
       gradient_of<gated>,
       "",
       "",
       kNothing},
      // limits x to between -cap and cap (Gemma 2)
      {"softcap", {"x"}, 1, kOther, {{0, 0}}, softcap, "cap", "softcap_grad", kResults},
      {"softcap_grad", {"y", "dy"}, 1, kOther, {{0, 1}, {0, 0}}, gradient_of<softcap>, "cap", "", kNothing},
      // a constant factor
      {"scale", {"x"}, 1, kOther, {{0, 0}}, scale, "factor", "scale", kNothing},
  };
}

class ElementwiseOp final : public Op {
 public:
  explicit ElementwiseOp(const ElementwiseRow& row) : row_(row) {}

  std::string_view name() const override { return row_.name; }
  OperandNames operands(const Attrs&, size_t) const override { return row_.operands; }
  OpKind kind() const override { return row_.kind; }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, row_.operands.size());
    row_.formula(name(), attrs);
    require_float(name(), row_.operands[0], inputs[0]);
    for (size_t i = 1; i < inputs.size(); ++i) require_type(name(), row_.operands[i], inputs[i], inputs[0]);
    return std::vector<Type>(row_.results, computed(inputs[0], inputs[0].dtype));
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return row_.aliases; }

  void vjp(VjpContext& context) const override {
    if (row_.gradient.empty()) return Op::vjp(context);
    const int count = static_cast<int>(row_.operands.size());
    const ValueId cotangent = context.cotangent(0);
    bool wanted = false;
    for (int i = 0; i < count; ++i) wanted = wanted || context.wants(i);
    if (cotangent == kNone || !wanted) return;
    std::vector<ValueId> read;
    if (row_.saved == SavedForGradient::inputs)
      for (int i = 0; i < count; ++i) read.push_back(context.input(i));
    if (row_.saved == SavedForGradient::results) read.push_back(context.output(0));
    read.push_back(cotangent);
    const std::vector<ValueId> gradients = context.build().append(row_.gradient, read, context.attrs(), Role::gradient);
    for (int i = 0; i < count; ++i)
      if (context.wants(i)) context.contribute(i, gradients[static_cast<size_t>(i)]);
  }

 private:
  const ElementwiseRow& row_;
};

}  // namespace

std::span<const ElementwiseRow> elementwise_rows() {
  static const std::vector<ElementwiseRow> rows = make_rows();
  return rows;
}

std::vector<std::string_view> elementwise_kernels() {
  std::vector<std::string_view> ops{"cast", "dropout"};
  for (const ElementwiseRow& row : elementwise_rows()) ops.push_back(row.name);
  return ops;
}

PreparedFormula prepared_formula(std::string_view op, const Attrs& attrs) {
  if (op == "cast") return {Formula::copy};
  if (op == "dropout") {
    const double rate = attrs.real("rate");
    return {Formula::drop, static_cast<float>(1 / (1 - rate)), true, static_cast<uint64_t>(attrs.integer("tensor")),
            static_cast<uint32_t>(std::lround(rate * 0x1p31))};
  }
  const std::span<const ElementwiseRow> rows = elementwise_rows();
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const ElementwiseRow& row) { return row.name == op; });
  HR_CHECK(at != rows.end(), "there is no elementwise op '{}'", op);
  return {at->formula(op, attrs), at->constant.empty() ? 1 : attrs.real(at->constant)};
}

void register_elementwise_ops(OpRegistry& registry) {
  for (const ElementwiseRow& row : elementwise_rows()) registry.add(std::make_unique<ElementwiseOp>(row));
}

}  // namespace headroom
