// Rules of the global gradient norm and of the scalars of an update.
#include <memory>

#include "ops/reduce/chunks.h"
#include "ops/registry.h"
#include "ops/step_scalars.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// acc' = [acc +] sum of x^2, in f64
class SumSquares final : public Op {
 public:
  std::string_view name() const override { return "sum_squares"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x", "accumulator"}; }
  OpKind kind() const override { return OpKind::squared_norm; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 2);
    HR_CHECK(inputs[0].dtype == DType::f32, "sum_squares: x is f32, not {}", dtype_name(inputs[0].dtype));
    require_whole(name(), "the accumulator", inputs[1], DType::f64, {Dim::of(1)});
    const std::string_view accumulate = attrs.text("accumulate", "always");
    HR_CHECK(accumulate == "always" || accumulate == "first", "sum_squares: accumulate is always or first, not '{}'",
             accumulate);
    return {inputs[1]};
  }

  std::string_view summed_slices() const override { return "x"; }
  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 1, true}}; }
  Work work(const OpCall& call) const override {
    return {2 * static_cast<double>(element_count(call.inputs[0].dims)),
            static_cast<double>(storage_bytes(call.inputs[0]))};
  }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

// 1 if max_norm is 0, else min(1, max_norm / (norm + 1e-6)) as torch.nn.utils.clip_grad_norm_ computes it, NaN if the
// norm is not finite. Attribute "scaled" 1: the gradients have the loss scale. The norm is that without the scale, the
// coefficient also divides by it, and a norm that is not finite gives NaN even if max_norm is 0.
class ClipCoefficient final : public Op {
 public:
  std::string_view name() const override { return "clip_coefficient"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"squares", "hyper"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 2);
    flag(name(), attrs, "scaled");
    require_whole(name(), "the sum of squares", inputs[0], DType::f64, {Dim::of(1)});
    require_whole(name(), "hyper", inputs[1], DType::f32, {Dim::of(kHyperCount)});
    return {Type{DType::f32, {Dim::of(1)}}};
  }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

// The element kLossScale of hyper as a value
class LossScale final : public Op {
 public:
  std::string_view name() const override { return "loss_scale"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"hyper"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    require_inputs(name(), inputs, 1);
    require_whole(name(), "hyper", inputs[0], DType::f32, {Dim::of(kHyperCount)});
    return {Type{DType::f32, {Dim::of(1)}}};
  }
};

}  // namespace

void register_reduce_ops(OpRegistry& registry) {
  registry.add(std::make_unique<SumSquares>());
  registry.add(std::make_unique<ClipCoefficient>());
  registry.add(std::make_unique<LossScale>());
}

}  // namespace headroom
