// Rules of the rotary position embedding (Su et al. 2021, half-split pairs as in HF's rotate_half) and its table.
#include <memory>

#include "ir/vjp.h"
#include "ops/registry.h"
#include "ops/rotary/factors.h"
#include "ops/rotary/operands.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// Rotates pairs (i, i + d/2) of the first d channels of each head; d is the width of the table, and the other channels
// are unchanged (partial rotary embeddings). The angles are those of table row offset + s (attribute "offset" 1:
// i32[1], or i32[batch] with one offset for each batch row), or of row s - starts[b, s] (attribute "segments" 1: starts
// i32[batch, seq]).
class Rotary final : public Op {
 public:
  std::string_view name() const override { return "rotary"; }
  OperandNames operands(const Attrs& attrs, size_t) const override {
    OperandNames names{"x", "table"};
    if (attrs.integer("offset") != 0) names.push_back("offset");
    if (attrs.integer("segments") != 0) names.push_back("starts");
    return names;
  }
  OpKind kind() const override { return OpKind::rotation; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    const bool offset = flag(name(), attrs, "offset");
    const bool segments = flag(name(), attrs, "segments");
    flag(name(), attrs, "inverse");
    HR_CHECK(!(offset && segments), "rotary: an offset and segments");
    require_inputs(name(), inputs, 2 + size_t{offset || segments});
    const Type& x = inputs[RotaryInputs::x];
    const Type& table = inputs[RotaryInputs::table];
    require_float(name(), "x", x, 3);
    HR_CHECK(x.shape.size() == 3, "rotary: x has {} dimensions, not 3", x.shape.size());
    const int64_t heads = attrs.integer("heads");
    const int64_t width = constant_dim(name(), "the width of x", x.shape[2]);
    HR_CHECK(heads >= 1 && width % heads == 0, "rotary: {} heads in {}", heads, width);
    HR_CHECK(table.shape.size() == 2, "rotary: the table has {} dimensions, not 2", table.shape.size());
    const int64_t turned = constant_dim(name(), "the width of the table", table.shape[1]);
    HR_CHECK(turned % 2 == 0 && turned <= width / heads, "rotary: a table of {} columns for heads of {}", turned,
             width / heads);
    require_whole(name(), "the table", table, DType::f32, table.shape);
    if (offset) require_offset(name(), inputs[RotaryInputs::shift], x.shape[0]);
    if (segments)
      require_whole(name(), "the starts", inputs[RotaryInputs::shift], DType::i32, {x.shape[0], x.shape[1]});
    return {computed(x, x.dtype)};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, RotaryInputs::x, false}}; }
  bool take_segments(Attrs& attrs) const override {
    attrs.set("segments", int64_t{1});
    return true;
  }

  // One row of the table is read per position.
  Work work(const OpCall& call) const override {
    const double table =
        static_cast<double>(call.inputs[RotaryInputs::x].dims[1] * call.inputs[RotaryInputs::table].dims[1] * 4);
    return {3 * static_cast<double>(element_count(call.inputs[RotaryInputs::x].dims)),
            2 * static_cast<double>(storage_bytes(call.inputs[RotaryInputs::x])) + table};
  }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone || !context.wants(RotaryInputs::x)) return;
    std::vector<ValueId> inputs = context.node().inputs;
    inputs[RotaryInputs::x] = dy;
    Attrs attrs = context.attrs();
    attrs.set("inverse", int64_t{attrs.integer("inverse") == 0});
    context.contribute(RotaryInputs::x,
                       context.build().call("rotary", std::move(inputs), std::move(attrs), Role::gradient));
  }
};

// Row p: head_dim/2 cosines, then head_dim/2 sines of p times the inverse frequencies; times "amplitude".
class RopeTable final : public Op {
 public:
  std::string_view name() const override { return "rope_table"; }
  OperandNames operands(const Attrs&, size_t inputs) const override {
    return inputs == 0 ? OperandNames{} : OperandNames{"storage"};
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 0, 1);
    const int64_t positions = attrs.integer("positions");
    const int64_t width = attrs.integer("head_dim");
    HR_CHECK(positions >= 1 && positions <= int64_t{1} << 31, "rope_table: {} positions", positions);
    HR_CHECK(width >= 2 && width % 2 == 0 && width <= 1 << 16, "rope_table: head_dim is {}", width);
    HR_CHECK(attrs.real("theta") > 0, "rope_table: theta is {}", attrs.real("theta"));
    const std::string_view scaling = attrs.text("scaling", "default");
    if (scaling == "linear" || scaling == "llama3")
      HR_CHECK(attrs.real("factor") > 0, "rope_table: factor is {}", attrs.real("factor"));
    else
      HR_CHECK(scaling == "default" || scaling == "longrope", "rope_table: no scaling '{}'", scaling);
    if (scaling == "llama3") require_llama3(attrs);
    if (scaling == "longrope") require_longrope(attrs, width);
    const Type result{DType::f32, {Dim::of(positions), Dim::of(width)}};
    if (!inputs.empty()) require_type(name(), "the storage", inputs[0], result);
    return {result};
  }

  // The input, if there is one, is the storage that the table is written to.
  std::vector<Alias> aliases(const Attrs&, int inputs) const override {
    if (inputs == 1) return {{0, 0, true}};
    return {};
  }

  Work work(const OpCall& call) const override {
    return {40 * static_cast<double>(element_count(call.outputs[0].dims)),
            static_cast<double>(storage_bytes(call.outputs[0]))};
  }

 private:
  static void require_longrope(const Attrs& attrs, int64_t width) {
    const std::vector<double> factors = longrope_factors(attrs);
    HR_CHECK(static_cast<int64_t>(factors.size()) == width / 2, "rope_table: {} factors for {} columns", factors.size(),
             width);
    for (double factor : factors) HR_CHECK(factor > 0, "rope_table: a factor of {}", factor);
    HR_CHECK(attrs.real("amplitude", 1) > 0, "rope_table: amplitude is {}", attrs.real("amplitude", 1));
  }
  static void require_llama3(const Attrs& attrs) {
    const double low = attrs.real("low_freq_factor");
    const double high = attrs.real("high_freq_factor");
    HR_CHECK(low > 0 && high > low, "rope_table: low_freq_factor {} and high_freq_factor {}", low, high);
    HR_CHECK(attrs.integer("original_positions") >= 1, "rope_table: original_positions is {}",
             attrs.integer("original_positions"));
  }
};

}  // namespace

void register_rotary_ops(OpRegistry& registry) {
  registry.add(std::make_unique<Rotary>());
  registry.add(std::make_unique<RopeTable>());
}

}  // namespace headroom
