// Rules of the copies between a sequence and its parts: attributes "part" and "parts" say which rows (part_begin).
#include <memory>

#include "ir/limits.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

class RowCopy : public Op {
 public:
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }

 protected:
  // The second dimension of the part of `whole`.
  Dim part_of(const Dim& whole, const Attrs& attrs) const {
    const int64_t part = attrs.integer("part"), parts = attrs.integer("parts");
    HR_CHECK(parts >= 2 && parts <= kMaxParts && part >= 0 && part < parts, "{}: part {} of {}", name(), part, parts);
    HR_CHECK(whole.parts == 1, "{}: a part of a part", name());
    if (whole.symbol < 0) return Dim::of(part_length(whole.constant, part, parts));
    return Dim::of_part(whole.symbol, static_cast<int32_t>(part), static_cast<int32_t>(parts));
  }

  void require_rows(const Type& type) const {
    require_inputs(name(), {&type, 1}, 1);
    HR_CHECK(type.shape.size() >= 2 && !type.shard, "{}: rows are whole tensors [batch, seq, ...]", name());
  }
};

// y = x[:, rows of the part]
class TakeRows final : public RowCopy {
 public:
  std::string_view name() const override { return "take_rows"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1);
    require_rows(inputs[0]);
    Type y = computed(inputs[0], inputs[0].dtype);
    y.shape[1] = part_of(y.shape[1], attrs);
    return {y};
  }

  Work work(const OpCall& call) const override { return {0, 2 * static_cast<double>(storage_bytes(call.outputs[0]))}; }
};

// into[:, rows of the part] = x. Without `into`, x's rows are part of a symbolic dimension, and the others are not
// written.
class PutRows final : public RowCopy {
 public:
  std::string_view name() const override { return "put_rows"; }
  OperandNames operands(const Attrs&, size_t inputs) const override {
    return inputs == 1 ? OperandNames{"x"} : OperandNames{"x", "into"};
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 1, 2);
    require_rows(inputs[0]);
    const Dim& rows = inputs[0].shape[1];
    HR_CHECK(inputs.size() == 2 || rows.parts > 1, "put_rows: of how many rows x is a part is not known");
    Type whole = computed(inputs[0], inputs[0].dtype);
    if (inputs.size() == 2) require_rows(inputs[1]);
    whole.shape[1] = inputs.size() == 2 ? inputs[1].shape[1] : Dim::of_symbol(rows.symbol);
    HR_CHECK(rows == part_of(whole.shape[1], attrs), "put_rows: x is not part {} of {}", attrs.integer("part"),
             attrs.integer("parts"));
    if (inputs.size() == 2) require_type(name(), "into", inputs[1], whole);
    return {whole};
  }
  std::vector<Alias> aliases(const Attrs&, int inputs) const override {
    if (inputs < 2) return {};
    return {{0, 1, true}};
  }

  Work work(const OpCall& call) const override { return {0, 2 * static_cast<double>(storage_bytes(call.inputs[0]))}; }
};

}  // namespace

void register_rows_ops(OpRegistry& registry) {
  registry.add(std::make_unique<TakeRows>());
  registry.add(std::make_unique<PutRows>());
}

}  // namespace headroom
