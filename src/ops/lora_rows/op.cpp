// Rules of lora_rows: low-rank adapters in slots, of which each row uses one or none.
#include <memory>

#include "base/error.h"
#include "ops/lora_rows/shape.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// (x, a, b, scales, slots, y) -> y'. With slot s = slots[r]
//   y'[r] = y[r] + scales[s] * (x[r] a[s]^T) b[s]
// and y'[r] = y[r] if s is not a slot. x is [rows, 1, ins], y [rows, 1, outs], a [slots, rank, ins] and b [slots, rank,
// outs], which holds each matrix B [outs, rank] transposed. Sums are f32. The bits of a row of the result do not depend
// on the other rows.
class LoraRows final : public Op {
 public:
  std::string_view name() const override { return "lora_rows"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x", "a", "b", "scales", "slots", "y"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    require_inputs(name(), inputs, 6);
    const Type &x = inputs[LoraRowsInputs::x], &a = inputs[LoraRowsInputs::a], &b = inputs[LoraRowsInputs::b],
               &y = inputs[LoraRowsInputs::y];
    for (const Type* rows : {&x, &y}) {
      require_float(name(), "x or y", *rows, 3);
      HR_CHECK(rows->shape.size() == 3 && rows->shape[1] == Dim::of(1) && !rows->shard,
               "{}: rows are [rows, 1, width], whole", name());
    }
    HR_CHECK(x.shape[0] == y.shape[0], "{}: x and y have other rows", name());
    require_float(name(), "a", a, 3);
    HR_CHECK(a.shape.size() == 3 && a.shape[2] == x.shape[2] && !a.shard, "{}: a is [slots, rank, ins], whole", name());
    require_whole(name(), "b", b, a.dtype, {a.shape[0], a.shape[1], y.shape[2]});
    for (const DType dtype : {x.dtype, y.dtype})
      HR_CHECK(dtype == a.dtype || dtype == DType::f32 || a.dtype == DType::f32, "{}: no {} rows beside {} matrices",
               name(), dtype_name(dtype), dtype_name(a.dtype));
    require_whole(name(), "the scales", inputs[LoraRowsInputs::scales], DType::f32, {a.shape[0]});
    require_whole(name(), "the slots", inputs[LoraRowsInputs::slots], DType::i32, {x.shape[0]});
    return {computed(y, y.dtype)};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, LoraRowsInputs::y, false}}; }

  // As if each row used a slot, and a different one as long as there are enough slots.
  Work work(const OpCall& call) const override {
    const LoraRowsShape shape = lora_rows_shape(call);
    const auto count = [](int64_t number) { return static_cast<double>(number); };
    const double matrices = count(shape.rank) * count(shape.ins + shape.outs);
    Work work{2.0 * count(shape.rows) * matrices};
    work.bytes =
        count(std::min(shape.rows, shape.slots)) * matrices * count(dtype_bytes(call.inputs[LoraRowsInputs::a].dtype)) +
        count(storage_bytes(call.inputs[LoraRowsInputs::x])) + 2 * count(storage_bytes(call.inputs[LoraRowsInputs::y]));
    return work;
  }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

}  // namespace

void register_lora_rows_ops(OpRegistry& registry) { registry.add(std::make_unique<LoraRows>()); }

}  // namespace headroom
