// Rules of split and concat along the last dimension.
#include <memory>
#include <numeric>

#include "ir/vjp.h"
#include "ops/registry.h"
#include "ops/split/parts.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// x[..., groups * sum(sizes)] -> one tensor [..., groups * size] per size
class Split final : public Op {
 public:
  std::string_view name() const override { return "split"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x"}; }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1);
    const Type& x = inputs[0];
    require_float(name(), "x", x);
    const std::vector<int64_t> sizes = parse_sizes(name(), attrs);
    const int64_t width = constant_dim(name(), "the width of x", x.shape.back());
    const int64_t groups = parse_groups(name(), attrs);
    const int64_t sum = groups * std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    HR_CHECK(sum == width, "split: the sizes sum to {}, x has a width of {}", sum, width);
    std::vector<Type> parts(sizes.size(), computed(x, x.dtype));
    for (size_t i = 0; i < sizes.size(); ++i) parts[i].shape.back() = Dim::of(groups * sizes[i]);
    return parts;
  }

  void vjp(VjpContext& context) const override {
    std::vector<ValueId> parts;
    std::string present;
    for (size_t i = 0; i < context.node().outputs.size(); ++i) {
      const ValueId part = context.cotangent(static_cast<int>(i));
      present += part == kNone ? '0' : '1';
      if (part != kNone) parts.push_back(part);
    }
    if (parts.empty() || !context.wants(0)) return;
    Attrs attrs{{"sizes", std::string(context.attrs().text("sizes"))}};
    if (parts.size() < present.size()) attrs.set("present", present);
    if (context.attrs().has("groups")) attrs.set("groups", context.attrs().integer("groups"));
    context.contribute(0, context.build().call("concat", std::move(parts), std::move(attrs), Role::gradient));
  }
};

// parts[..., groups * sizes[i]] -> y[..., groups * sum(sizes)]; parts that "present" marks with 0 are not inputs and
// become zeros
class Concat final : public Op {
 public:
  std::string_view name() const override { return "concat"; }
  OperandNames operands(const Attrs&, size_t inputs) const override { return OperandNames(inputs, "part"); }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1, inputs.size());
    const std::vector<ConcatPart> parts = concat_parts(inputs, attrs);
    Type y = computed(inputs[0], inputs[0].dtype);
    const int64_t groups = parse_groups(name(), attrs);
    int64_t width = 0;
    for (const ConcatPart& part : parts) {
      width += groups * part.size;
      if (part.input == kNone) continue;
      Type wanted = inputs[0];
      wanted.shape.back() = Dim::of(groups * part.size);
      require_type(name(), "a part", inputs[static_cast<size_t>(part.input)], wanted);
    }
    y.shape.back() = Dim::of(width);
    return {y};
  }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone) return;
    std::vector<Type> inputs;
    bool wanted = false;
    for (size_t i = 0; i < context.node().inputs.size(); ++i) {
      inputs.push_back(context.build().type(context.node().inputs[i]));
      wanted = wanted || context.wants(static_cast<int>(i));
    }
    if (!wanted) return;
    const std::vector<ConcatPart> parts = concat_parts(inputs, context.attrs());
    std::string sizes;
    for (const ConcatPart& part : parts) sizes += fmt::format("{}{}", sizes.empty() ? "" : ",", part.size);
    Attrs attrs{{"sizes", sizes}};
    if (context.attrs().has("groups")) attrs.set("groups", context.attrs().integer("groups"));
    const std::vector<ValueId> results = context.build().append("split", {dy}, std::move(attrs), Role::gradient);
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i].input != kNone && context.wants(parts[i].input)) context.contribute(parts[i].input, results[i]);
  }

 private:
  static std::vector<ConcatPart> concat_parts(std::span<const Type> inputs, const Attrs& attrs) {
    std::vector<int64_t> widths;
    for (const Type& type : inputs) {
      require_float("concat", "a part", type);
      const int64_t width = constant_dim("concat", "the width of a part", type.shape.back());
      const int64_t groups = parse_groups("concat", attrs);
      HR_CHECK(width % groups == 0, "concat: a part of {} columns in {} groups", width, groups);
      widths.push_back(width / groups);
    }
    return layout_concat(widths, attrs);
  }
};

}  // namespace

void register_split_ops(OpRegistry& registry) {
  registry.add(std::make_unique<Split>());
  registry.add(std::make_unique<Concat>());
}

}  // namespace headroom
