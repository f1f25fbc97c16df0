// Rules of stochastic gradient descent with momentum (Sutskever et al. 2013, in the form of torch.optim.SGD).
#include <memory>

#include "ops/registry.h"
#include "ops/step_scalars.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

bool has_momentum(const Attrs& attrs) { return attrs.real("momentum", 0) > 0; }

// (w, g, [buffer], hyper, clip, [copy]) -> (w', [buffer'], [copy']), each in the storage of its input. With d = clip g
// + decay w: buffer' = momentum buffer + d; w' = w - lr buffer', or with "nesterov" 1 w - lr (d + momentum buffer');
// without momentum w' = w - lr d. A bf16 weight has no copy; it is rounded as adamw rounds it.
class Sgd final : public Op {
 public:
  std::string_view name() const override { return "sgd"; }
  OperandNames operands(const Attrs& attrs, size_t inputs) const override {
    OperandNames names{"weight", "gradient"};
    if (has_momentum(attrs)) names.push_back("momentum_buffer");
    names.insert(names.end(), {"hyper", "clip"});
    if (inputs > names.size()) names.push_back("copy");
    return names;
  }
  OpKind kind() const override { return OpKind::update; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    const double momentum = attrs.real("momentum", 0);
    HR_CHECK(momentum >= 0 && momentum < 1, "sgd: momentum is {}", momentum);
    HR_CHECK(!flag(name(), attrs, "nesterov") || momentum > 0, "sgd: nesterov without momentum");
    flag(name(), attrs, "decay");
    const size_t hyper = momentum > 0 ? 3 : 2;
    require_inputs(name(), inputs, hyper + 2, hyper + 3);
    const Type& w = inputs[0];
    require_float(name(), "the weight", w, 0);
    const Type wide = computed(w, DType::f32);
    require_type(name(), "the gradient", inputs[1], wide);
    if (momentum > 0) require_type(name(), "the momentum buffer", inputs[2], wide);
    require_whole(name(), "hyper", inputs[hyper], DType::f32, {Dim::of(kHyperCount)});
    require_whole(name(), "clip", inputs[hyper + 1], DType::f32, {Dim::of(1)});
    std::vector<Type> results{w};
    if (momentum > 0) results.push_back(inputs[2]);
    if (inputs.size() > hyper + 2) {
      HR_CHECK(w.dtype == DType::f32, "sgd: a bf16 weight has no copy");
      require_type(name(), "the copy", inputs.back(), computed(w, DType::bf16));
      results.push_back(inputs.back());
    }
    return results;
  }

  std::vector<Alias> aliases(const Attrs& attrs, int inputs) const override {
    const bool momentum = has_momentum(attrs);
    std::vector<Alias> aliases{{0, 0, true}};
    if (momentum) aliases.push_back({1, 2, true});
    if (inputs > (momentum ? 5 : 4)) aliases.push_back({momentum ? 2 : 1, inputs - 1, true});
    return aliases;
  }

  // Per element: the gradient is read, the buffer and the weight are read and written, and the copy is written.
  Work work(const OpCall& call) const override {
    const bool momentum = has_momentum(call.attrs);
    const double elements = static_cast<double>(element_count(call.inputs[0].dims));
    const double weight = static_cast<double>(2 * dtype_bytes(call.inputs[0].dtype));
    const bool copy = call.outputs.size() > (momentum ? 2u : 1u);
    return {(momentum ? 6 : 4) * elements, (4 + (momentum ? 8 : 0) + weight + (copy ? 2 : 0)) * elements};
  }
  CostClass cost_class() const override { return CostClass::optimizer; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
  bool has_effect() const override { return true; }
};

}  // namespace

void register_sgd_ops(OpRegistry& registry) { registry.add(std::make_unique<Sgd>()); }

}  // namespace headroom
