// Rules of select_last and select_rows: one row of a sequence, for the logits of the last prompt token; some rows of a
// step, for the logits that are wanted.
#include <memory>

#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// y[0, 0] = x[0, index], index clamped to the sequence
class SelectLast final : public Op {
 public:
  std::string_view name() const override { return "select_last"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x", "index"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    require_inputs(name(), inputs, 2);
    const Type& x = inputs[0];
    require_float(name(), "x", x, 3);
    HR_CHECK(x.shape.size() == 3 && x.shape[0] == Dim::of(1) && !x.shard, "select_last: x is [1, seq, width]");
    require_whole(name(), "the index", inputs[1], DType::i32, {Dim::of(1)});
    return {Type{x.dtype, {Dim::of(1), Dim::of(1), x.shape[2]}}};
  }

  Work work(const OpCall& call) const override { return {0, 2 * static_cast<double>(storage_bytes(call.outputs[0]))}; }
};

// y[l, 0] = x[index[l], 0]; an index out of range selects row 0
class SelectRows final : public Op {
 public:
  std::string_view name() const override { return "select_rows"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x", "index"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    require_inputs(name(), inputs, 2);
    const Type &x = inputs[0], &index = inputs[1];
    require_float(name(), "x", x, 3);
    HR_CHECK(x.shape.size() == 3 && x.shape[1] == Dim::of(1) && !x.shard, "select_rows: x is [rows, 1, width]");
    HR_CHECK(index.shape.size() == 1, "select_rows: the index has {} dimensions, not 1", index.shape.size());
    require_whole(name(), "the index", index, DType::i32, index.shape);
    return {Type{x.dtype, {index.shape[0], Dim::of(1), x.shape[2]}}};
  }

  Work work(const OpCall& call) const override { return {0, 2 * static_cast<double>(storage_bytes(call.outputs[0]))}; }
};

}  // namespace

void register_select_last_ops(OpRegistry& registry) {
  registry.add(std::make_unique<SelectLast>());
  registry.add(std::make_unique<SelectRows>());
}

}  // namespace headroom
