// The table of elementwise updates, and the rules that follow from it.
#include <algorithm>
#include <limits>
#include <memory>

#include "base/error.h"
#include "ir/row_slice.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"
#include "ops/stream/row_codes.h"
#include "ops/update/blocks.h"
#include "ops/update/table.h"

namespace headroom {
namespace {

using namespace operand_rules;

constexpr double kMostRate = 1e9;

UpdateFormula sgd(const Attrs& attrs) {
  const bool nesterov = flag("sgd", attrs, "nesterov");
  HR_CHECK(!nesterov || attrs.real("momentum") > 0, "sgd: nesterov without momentum");
  if (nesterov) return UpdateFormula::sgd_nesterov;
  return attrs.real("momentum") > 0 ? UpdateFormula::sgd_momentum : UpdateFormula::sgd;
}

UpdateFormula rmsprop(const Attrs& attrs) {
  const int variant = 2 * flag("rmsprop", attrs, "centered") + (attrs.real("momentum") > 0);
  return static_cast<UpdateFormula>(static_cast<int>(UpdateFormula::rmsprop) + variant);
}

UpdateFormula moments(const Attrs& attrs) {
  return flag("moments", attrs, "decoupled") ? UpdateFormula::moments_decoupled : UpdateFormula::moments;
}

template <UpdateFormula kFormula>
UpdateFormula always(const Attrs&) {
  return kFormula;
}

std::vector<UpdateRow> make_rows() {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const std::vector<UpdateNumber> adam{{"beta1"}, {"beta2"}, {"eps", 0, kAny}};
  return {
      {"adamw", adam, always<UpdateFormula::adamw>},
      {"adam", adam, always<UpdateFormula::adam>},
      {"moments", {{"beta1"}, {"beta2"}}, moments},
      {"sgd", {{"momentum"}}, sgd},
      {"rmsprop", {{"alpha"}, {"eps", 0, kAny}, {"momentum"}}, rmsprop},
      {"adagrad", {{"eps", 0, kAny}}, always<UpdateFormula::adagrad>},
      {"lion", {{"beta1"}, {"beta2"}}, always<UpdateFormula::lion>},
      {"sophia", {{"beta1"}, {"beta2"}, {"rho", 0, kAny}}, always<UpdateFormula::sophia>},
      {"adamw_8bit", adam, always<UpdateFormula::adamw>, true},
      {"lion_8bit", {{"beta1"}, {"beta2"}}, always<UpdateFormula::lion>, true},
  };
}

double flops_of(UpdateFormula formula) {
  switch (formula) {
#define HR_FLOPS(number, type, flops, ...) \
  case UpdateFormula::number:              \
    return flops;
    HR_UPDATES(HR_FLOPS)
#undef HR_FLOPS
  }
  return 0;
}

// What `use` makes of the names of a formula's states.
template <typename Use>
auto with_states(UpdateFormula formula, const Use& use) {
  using Names = std::initializer_list<std::string_view>;
  switch (formula) {
#define HR_STATES(number, type, flops, ...) \
  case UpdateFormula::number:               \
    return use(Names{__VA_ARGS__});
    HR_UPDATES(HR_STATES)
#undef HR_STATES
  }
  return use(Names{});
}

size_t state_count(UpdateFormula formula) {
  return with_states(formula, [](auto names) { return names.size(); });
}

// Inputs that hold the states: in blocks, codes and their scales.
size_t state_tensors(const UpdateRow& row, UpdateFormula formula) {
  return (row.in_blocks ? 2 : 1) * state_count(formula);
}

class UpdateOp final : public Op {
 public:
  explicit UpdateOp(const UpdateRow& row) : row_(row) {}

  std::string_view name() const override { return row_.name; }
  OpKind kind() const override { return OpKind::update; }
  OperandNames operands(const Attrs& attrs, size_t inputs) const override {
    OperandNames names{"weight", "gradient"};
    for (const std::string_view state : states_of(row_.formula(attrs))) {
      names.push_back(state);
      if (row_.in_blocks) names.push_back("absmax");
    }
    names.insert(names.end(), {"hyper", "clip"});
    if (inputs > names.size()) names.push_back("copy");
    return names;
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    for (const UpdateNumber& number : row_.numbers) {
      HR_CHECK(attrs.has(number.name), "{}: no {}", name(), number.name);
      const double value = attrs.real(number.name);
      HR_CHECK(value >= number.least && value < number.below, "{}: {} is {}", name(), number.name, value);
    }
    flag(name(), attrs, "decay");
    HR_CHECK(!attrs.has("rate") || (attrs.real("rate") > 0 && attrs.real("rate") < kMostRate), "{}: rate is {}", name(),
             attrs.real("rate"));
    const UpdatePlan plan(row_, attrs);
    require_inputs(name(), inputs.subspan(std::min<size_t>(1, inputs.size())), plan.clip(), plan.clip() + 1);
    const Type& w = inputs[UpdateOpInputs::weight];
    require_float(name(), "the weight", w, 0);
    if (!w.storage.dense()) require_int8_rows(w, attrs, inputs.size() == plan.clip() + 1);
    const OperandNames names = operands(attrs, inputs.size());
    std::vector<Type> results{w};
    require_type(name(), "gradient", inputs[UpdateOpInputs::gradient], computed(w, DType::f32));
    HR_CHECK(!row_.in_blocks || !w.shard, "{}: a slice of a weight has no blocks of its own", name());
    for (size_t i = UpdateOpInputs::states; i < plan.hyper; ++i) {
      require_type(name(), names[i], inputs[i], state_type(w, i));
      results.push_back(inputs[i]);
    }
    require_whole(name(), "hyper", inputs[plan.hyper], DType::f32, {Dim::of(kHyperCount)});
    require_whole(name(), "clip", inputs[plan.clip()], DType::f32, {Dim::of(1)});
    if (inputs.size() > plan.clip() + 1) {
      HR_CHECK(w.dtype == DType::f32, "{}: a narrow weight has no copy", name());
      require_copy(name(), inputs.back(), w);
      results.push_back(inputs.back());
    }
    return results;
  }

  std::vector<Alias> aliases(const Attrs& attrs, int inputs) const override {
    const int tensors = static_cast<int>(state_tensors(row_, row_.formula(attrs)));
    std::vector<Alias> aliases{{0, UpdateOpInputs::weight, true}};
    for (int i = 0; i < tensors; ++i) aliases.push_back({i + 1, i + UpdateOpInputs::states, true});
    const int whole = UpdateOpInputs::states + tensors + 2;  // hyper and clip
    if (inputs > whole) aliases.push_back({1 + tensors, inputs - 1, true});
    return aliases;
  }

  // Per element: the gradient is read, states and weight are read and written, and the copy is written.
  Work work(const OpCall& call) const override {
    const UpdatePlan plan(row_, call.attrs);
    const double elements = static_cast<double>(element_count(call.inputs[UpdateOpInputs::weight].dims));
    const int64_t copy = call.outputs.size() > plan.copy ? 2 : 0;
    const int64_t states = (plan.in_blocks ? 2 : 8) * static_cast<int64_t>(plan.states);
    const int64_t weight = call.inputs[UpdateOpInputs::weight].storage.dense()
                               ? dtype_bytes(call.inputs[UpdateOpInputs::weight].dtype)
                               : 1;
    const int64_t bytes = 4 + states + 2 * weight + copy;
    return {flops_of(plan.formula) * elements, static_cast<double>(bytes) * elements};
  }
  CostClass cost_class() const override { return CostClass::optimizer; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
  bool has_effect() const override { return true; }
  int64_t update_grain() const override { return row_.in_blocks ? kStateBlock : 1; }

 private:
  void require_int8_rows(const Type& w, const Attrs& attrs, bool no_copy) const {
    HR_CHECK(w.dtype == DType::f32 && w.shape.size() == 2 &&
                 is_int8_rows(w.storage, constant_dim(name(), "a row's length", w.shape[1])),
             "{}: a weight in codes is a matrix of 8 bits with a scale per row", name());
    HR_CHECK(!row_.in_blocks && no_copy && !row_slice(attrs), "{}: codes have states in f32, no copy and no slices",
             name());
  }

  // The type of input i, a state of the weight.
  Type state_type(const Type& weight, size_t i) const {
    if (!row_.in_blocks) return computed(weight, DType::f32);
    if (i % 2 == 0) return computed(weight, DType::u8);
    int64_t elements = 1;
    for (const Dim& dim : weight.shape) elements *= constant_dim(name(), "a weight's dimension", dim);
    return Type{DType::f32, {Dim::of(blocks_of(elements))}};
  }

  const UpdateRow& row_;
};

}  // namespace

std::span<const UpdateRow> update_rows() {
  static const std::vector<UpdateRow> rows = make_rows();
  return rows;
}

const UpdateRow& update_row(std::string_view op) {
  const std::span<const UpdateRow> rows = update_rows();
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const UpdateRow& row) { return row.name == op; });
  HR_CHECK(at != rows.end(), "there is no elementwise update '{}'", op);
  return *at;
}

std::vector<std::string_view> states_of(UpdateFormula formula) {
  return with_states(formula, [](auto names) { return std::vector<std::string_view>(names); });
}

UpdatePlan::UpdatePlan(std::string_view op, const Attrs& attrs) : UpdatePlan(update_row(op), attrs) {}

UpdatePlan::UpdatePlan(const UpdateRow& row, const Attrs& attrs)
    : formula(row.formula(attrs)),
      decay(attrs.integer("decay") != 0),
      rate(attrs.has("rate") ? attrs.real("rate") : 1),
      tensor(static_cast<uint64_t>(attrs.integer("tensor"))),
      states(state_count(formula)),
      in_blocks(row.in_blocks),
      tensors(state_tensors(row, formula)),
      hyper(UpdateOpInputs::states + tensors),
      copy(1 + tensors) {
  for (size_t i = 0; i < row.numbers.size(); ++i) number[i] = attrs.real(row.numbers[i].name);
}

UpdatePlan::UpdatePlan(const KernelSpec& spec) : UpdatePlan(spec.op, spec.attrs) {
  if (!spec.inputs[UpdateOpInputs::weight].storage.dense()) columns = spec.inputs[UpdateOpInputs::weight].dims[1];
}

UpdateStep UpdatePlan::step(const float* scalars) const {
  UpdateStep step;
  step.lr = rate * static_cast<double>(scalars[kLearningRate]);
  step.decay = decay ? static_cast<double>(scalars[kWeightDecay]) : 0.0;
  step.drawn = static_cast<double>(scalars[kDrawnLabels]);
  for (int64_t i = 0; i < kOwnScalars; ++i) step.own[i] = static_cast<double>(scalars[kOwnScalar[i]]);
  std::copy(number, number + kUpdateNumbers, step.number);
  return step;
}

void register_update_ops(OpRegistry& registry) {
  for (const UpdateRow& row : update_rows()) registry.add(std::make_unique<UpdateOp>(row));
}

}  // namespace headroom
