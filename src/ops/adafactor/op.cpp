// Rules of Adafactor (Shazeer and Stern 2018, in the form of transformers' Adafactor).
#include <memory>

#include "ops/adafactor/plan.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// (w, g, row squares, col squares, [moment], hyper, clip, [copy]) -> (w', states'..., [copy']) of a matrix, with one
// state of squares in w's shape of a vector; each in the storage of its input. Mean squares of g^2 + eps1 over rows and
// columns decay by the step's share; u = g / sqrt(their product, scaled), divided by what its root mean square exceeds
// "clip_threshold" by; the rate is the schedule's or, with "relative_step", the step's own, times the weight's root
// mean square with "scale_parameter". With beta1 the moment of rate u is stepped by. The weight decays by rate times
// decay.
class Adafactor final : public Op {
 public:
  std::string_view name() const override { return "adafactor"; }
  OpKind kind() const override { return OpKind::update; }

  // The number of inputs, not of dimensions, is known here: attribute "factored" says which states there are.
  OperandNames operands(const Attrs& attrs, size_t inputs) const override {
    OperandNames names{"weight", "gradient"};
    const AdafactorPlan plan = plan_of(attrs);
    if (plan.factored)
      names.insert(names.end(), {"exp_avg_sq_row", "exp_avg_sq_col"});
    else
      names.push_back("exp_avg_sq");
    if (plan.moment) names.push_back("exp_avg");
    names.insert(names.end(), {"hyper", "clip"});
    if (inputs > names.size()) names.push_back("copy");
    return names;
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    for (const char* known : {"beta1", "eps1", "eps2", "clip_threshold"})
      HR_CHECK(attrs.real(known, -1) >= 0, "adafactor: {} is {}", known, attrs.real(known, -1));
    for (const char* known : {"scale_parameter", "relative_step", "decay", "factored"}) flag(name(), attrs, known);
    const AdafactorPlan plan = plan_of(attrs);
    require_inputs(name(), inputs, plan.factor() + 1, plan.factor() + 2);
    const Type& w = inputs[AdafactorInputs::weight];
    require_float(name(), "the weight", w, 0);
    HR_CHECK(plan.factored == (w.shape.size() >= 2), "adafactor: factored is {} of {} dimensions", plan.factored,
             w.shape.size());
    HR_CHECK(!w.shard, "adafactor: a slice of a weight is updated as a whole");
    const Type wide = computed(w, DType::f32);
    require_type(name(), "the gradient", inputs[AdafactorInputs::gradient], wide);
    require_states(inputs, plan, wide);
    require_whole(name(), "hyper", inputs[plan.hyper], DType::f32, {Dim::of(kHyperCount)});
    require_whole(name(), "clip", inputs[plan.factor()], DType::f32, {Dim::of(1)});
    std::vector<Type> results{w};
    for (size_t i = 0; i < plan.states(); ++i) results.push_back(inputs[AdafactorInputs::states + i]);
    if (inputs.size() > plan.factor() + 1) {
      HR_CHECK(w.dtype == DType::f32, "adafactor: a narrow weight has no copy");
      require_copy(name(), inputs.back(), w);
      results.push_back(inputs.back());
    }
    return results;
  }

  std::vector<Alias> aliases(const Attrs& attrs, int inputs) const override {
    const AdafactorPlan plan = plan_of(attrs);
    std::vector<Alias> aliases{{0, AdafactorInputs::weight, true}};
    for (int i = 0; i < static_cast<int>(plan.states()); ++i)
      aliases.push_back({i + 1, i + AdafactorInputs::states, true});
    if (inputs > static_cast<int>(plan.factor()) + 1)
      aliases.push_back({static_cast<int>(plan.copy), inputs - 1, true});
    return aliases;
  }

  // Per element: the gradient is read for the squares, for the update's norm, and for the update; the weight is read
  // and written, and read again for its scale; the moment is read and written.
  Work work(const OpCall& call) const override {
    const AdafactorPlan plan = plan_of(call.attrs);
    const double elements = static_cast<double>(element_count(call.inputs[AdafactorInputs::weight].dims));
    const int64_t weight = dtype_bytes(call.inputs[AdafactorInputs::weight].dtype);
    const int64_t squares = plan.factored ? 0 : 8, copy = call.outputs.size() > plan.copy ? 2 : 0;
    const int64_t bytes =
        (plan.factored ? 16 : 12) + (plan.scales ? 3 : 2) * weight + (plan.moment ? 8 : 0) + squares + copy;
    return {20 * elements, static_cast<double>(bytes) * elements};
  }
  CostClass cost_class() const override { return CostClass::optimizer; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
  bool has_effect() const override { return true; }

 private:
  static AdafactorPlan plan_of(const Attrs& attrs) { return {attrs, attrs.integer("factored") != 0}; }

  void require_states(std::span<const Type> inputs, const AdafactorPlan& plan, const Type& wide) const {
    Type rows = wide, cols = wide;
    if (plan.factored) {
      rows.shape.pop_back();
      cols.shape.erase(cols.shape.end() - 2);
      require_type(name(), "the rows' squares", inputs[AdafactorInputs::states], rows);
    }
    require_type(name(), "the columns' squares", inputs[1 + plan.cols_state()], cols);
    if (plan.moment) require_type(name(), "the moment", inputs[1 + plan.moment_state()], wide);
  }
};

}  // namespace

void register_adafactor_ops(OpRegistry& registry) { registry.add(std::make_unique<Adafactor>()); }

}  // namespace headroom
