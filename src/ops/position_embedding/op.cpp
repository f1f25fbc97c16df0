// Rules of the learned position embedding and of its table's gradient.
#include <memory>

#include "ir/vjp.h"
#include "ops/position_embedding/operands.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// Bytes of the `seq` rows of the table that one call touches.
double touched_rows(const ConcreteType& x, const ConcreteType& table) {
  return static_cast<double>(x.dims[1] * table.dims[1] * dtype_bytes(table.dtype));
}

// Attribute "first": the table's row for position 0.
int64_t first_row(std::string_view op, const Attrs& attrs) {
  const int64_t first = attrs.integer("first");
  HR_CHECK(first >= 0 && first <= 1 << 20, "{}: first is {}", op, first);
  return first;
}

// The optional last input: an offset, i32[1] or i32[batch], or starts, i32[batch, seq], subtracted from the positions.
void require_shift(std::string_view op, const Type& shift, const Type& x) {
  if (shift.shape.size() == 2)
    require_whole(op, "the starts", shift, DType::i32, {x.shape[0], x.shape[1]});
  else
    require_offset(op, shift, x.shape[0]);
}

// y[b, s] = x[b, s] + table[first + offset + s], with one offset or one for each b, or table[first + s - starts[b, s]];
// the table is f32 or of x's dtype
class PositionEmbedding final : public Op {
 public:
  std::string_view name() const override { return "position_embedding"; }
  OperandNames operands(const Attrs&, size_t inputs) const override {
    return inputs == 2 ? OperandNames{"x", "table"} : OperandNames{"x", "table", "shift"};
  }
  OpKind kind() const override { return OpKind::lookup; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 2, 3);
    first_row(name(), attrs);
    const Type& x = inputs[PositionInputs::x];
    const Type& table = inputs[PositionInputs::table];
    require_float(name(), "x", x, 3);
    HR_CHECK(x.shape.size() == 3, "position_embedding: x has {} dimensions, not 3", x.shape.size());
    HR_CHECK(table.shape.size() == 2, "position_embedding: the table has {} dimensions, not 2", table.shape.size());
    require_whole(name(), "the table", table, table.dtype == x.dtype ? x.dtype : DType::f32,
                  {table.shape[0], x.shape[2]});
    if (inputs.size() > PositionInputs::shift) require_shift(name(), inputs[PositionInputs::shift], x);
    return {computed(x, x.dtype)};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, PositionInputs::x, false}}; }
  bool take_segments(Attrs&) const override { return true; }

  Work work(const OpCall& call) const override {
    const double elements = static_cast<double>(element_count(call.inputs[PositionInputs::x].dims));
    return {elements, 2 * static_cast<double>(storage_bytes(call.inputs[PositionInputs::x])) +
                          touched_rows(call.inputs[PositionInputs::x], call.inputs[PositionInputs::table])};
  }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone) return;
    const bool shifted = context.node().inputs.size() > PositionInputs::shift;
    HR_CHECK(!shifted || context.build().type(context.input(PositionInputs::shift)).shape.size() == 2,
             "position_embedding: not differentiable with an offset");
    if (context.trains(PositionInputs::table)) {
      Attrs attrs{{"accumulate", std::string(context.accumulate(PositionInputs::table))}};
      if (context.attrs().has("first")) attrs.set("first", context.attrs().integer("first"));
      context.set_accumulator(PositionInputs::table,
                              context.build().call("position_embedding_grad",
                                                   {dy, context.accumulator(PositionInputs::table),
                                                    shifted ? context.input(PositionInputs::shift) : kNone},
                                                   std::move(attrs), Role::gradient));
    }
    if (context.wants(PositionInputs::x)) context.contribute(PositionInputs::x, dy);
  }
};

// acc[first + s] += sum over b of dy[b, s]; with starts acc[first + s - starts[b, s]] += dy[b, s]
class PositionEmbeddingGrad final : public Op {
 public:
  std::string_view name() const override { return "position_embedding_grad"; }
  OperandNames operands(const Attrs&, size_t inputs) const override {
    return inputs == 2 ? OperandNames{"dy", "accumulator"} : OperandNames{"dy", "accumulator", "starts"};
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 2, 3);
    require_accumulate(name(), attrs);
    first_row(name(), attrs);
    const Type& dy = inputs[PositionGradInputs::dy];
    const Type& acc = inputs[PositionGradInputs::accumulator];
    require_float(name(), "dy", dy, 3);
    HR_CHECK(dy.shape.size() == 3, "position_embedding_grad: dy has {} dimensions, not 3", dy.shape.size());
    HR_CHECK(acc.shape.size() == 2, "position_embedding_grad: the accumulator is a matrix");
    require_whole(name(), "the accumulator", acc, DType::f32, {acc.shape[0], dy.shape[2]});
    if (inputs.size() > PositionGradInputs::starts) {
      HR_CHECK(inputs[PositionGradInputs::starts].shape.size() == 2,
               "position_embedding_grad: starts are i32[batch, seq]");
      require_shift(name(), inputs[PositionGradInputs::starts], dy);
    }
    return {acc};
  }

  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, PositionGradInputs::accumulator, true}}; }

  Work work(const OpCall& call) const override {
    return {static_cast<double>(element_count(call.inputs[PositionGradInputs::dy].dims)),
            static_cast<double>(storage_bytes(call.inputs[PositionGradInputs::dy])) +
                2 * touched_rows(call.inputs[PositionGradInputs::dy], call.inputs[PositionGradInputs::accumulator])};
  }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

}  // namespace

void register_position_embedding_ops(OpRegistry& registry) {
  registry.add(std::make_unique<PositionEmbedding>());
  registry.add(std::make_unique<PositionEmbeddingGrad>());
}

}  // namespace headroom
