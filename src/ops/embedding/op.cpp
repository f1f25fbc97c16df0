// Rules of the token embedding and of its table's gradient. A table that is not trained may be in blocks of codes.
// Calls on a slice of the table's rows (ir/row_slice.h) are for the tokens whose ids are in it.
#include <memory>

#include "ir/row_slice.h"
#include "ir/vjp.h"
#include "ops/embedding/operands.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// Attribute "padding": the row of the table that gets no gradient, like nn.Embedding's padding_idx; absent: none.
void require_padding(std::string_view op, const Attrs& attrs, const Dim& rows) {
  if (!attrs.has("padding")) return;
  const int64_t padding = attrs.integer("padding");
  HR_CHECK(padding >= 0 && (row_slice(attrs) || padding < rows.constant), "{}: padding is row {} of {}", op, padding,
           rows.constant);
}

// ids, the table: dense, or f32 in blocks of codes, whose rows are decoded; in a slice after the first also the rows of
// the slices before.
void require_table(std::string_view op, std::span<const Type> inputs, bool sliced) {
  constexpr size_t kCount = EmbeddingInputs::onto;
  HR_CHECK(inputs.size() == kCount || (sliced && inputs.size() == kCount + 1), "{}: {} inputs, not 2", op,
           inputs.size());
  const Type &ids = inputs[EmbeddingInputs::ids], &table = inputs[EmbeddingInputs::table];
  HR_CHECK(ids.dtype == DType::i32 && ids.storage.dense(), "{}: ids are i32, not {}", op, dtype_name(ids.dtype));
  require_float(op, "table", table);
  HR_CHECK(table.storage.dense() || table.dtype == DType::f32, "{}: codes of {} elements", op, dtype_name(table.dtype));
  HR_CHECK(table.shape.size() == 2 && !table.shard, "{}: the table is a whole matrix", op);
  HR_CHECK(!sliced || table.storage.dense(), "{}: no slices of codes", op);
}

// The share of the tokens that a slice has, in the mean: attribute "slices" is their number.
double share_of(const Attrs& attrs) { return 1.0 / static_cast<double>(attrs.integer("slices", 1)); }

// y[b, s] = table[ids[b, s]], in attribute "dtype" or the table's
class Embedding final : public Op {
 public:
  std::string_view name() const override { return "embedding"; }
  OperandNames operands(const Attrs&, size_t inputs) const override {
    OperandNames names{"ids", "table"};
    if (inputs > names.size()) names.push_back("onto");
    return names;
  }
  OpKind kind() const override { return OpKind::lookup; }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_table(name(), inputs, row_slice(attrs).has_value());
    const Type &ids = inputs[EmbeddingInputs::ids], &table = inputs[EmbeddingInputs::table];
    require_padding(name(), attrs, table.shape[0]);
    Type y = computed(ids, float_attr(name(), attrs, table.dtype));
    y.shape.push_back(table.shape[1]);
    if (inputs.size() > EmbeddingInputs::onto) require_type(name(), "onto", inputs[EmbeddingInputs::onto], y);
    return {y};
  }

  std::string_view summed_slices() const override { return "table"; }
  std::vector<Alias> aliases(const Attrs&, int inputs) const override {
    if (inputs <= EmbeddingInputs::onto) return {};
    return {{0, EmbeddingInputs::onto, true}};
  }

  // Only the rows of the table that the ids name are read.
  Work work(const OpCall& call) const override {
    const ConcreteType& table = call.inputs[EmbeddingInputs::table];
    const double row = static_cast<double>(storage_bytes(table)) / static_cast<double>(table.dims[0]);
    const double rows = static_cast<double>(element_count(call.inputs[EmbeddingInputs::ids].dims));
    return {0, share_of(call.attrs) * (rows * (row + 4) + static_cast<double>(storage_bytes(call.outputs[0])))};
  }

  void vjp(VjpContext& context) const override {
    const ValueId dy = context.cotangent(0);
    if (dy == kNone || !context.trains(EmbeddingInputs::table)) return;
    Attrs attrs{{"accumulate", std::string(context.accumulate(EmbeddingInputs::table))}};
    if (context.attrs().has("padding")) attrs.set("padding", context.attrs().integer("padding"));
    context.set_accumulator(EmbeddingInputs::table, context.build().call("embedding_grad",
                                                                         {context.input(EmbeddingInputs::ids), dy,
                                                                          context.accumulator(EmbeddingInputs::table)},
                                                                         std::move(attrs), Role::gradient));
  }
};

// acc[ids[b, s]] += dy[b, s], except for row "padding"
class EmbeddingGrad final : public Op {
 public:
  std::string_view name() const override { return "embedding_grad"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"ids", "dy", "accumulator"}; }
  bool by_rows() const override { return true; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 3);
    require_accumulate(name(), attrs);
    const Type& acc = inputs[EmbeddingGradInputs::accumulator];
    HR_CHECK(inputs[EmbeddingGradInputs::ids].dtype == DType::i32, "embedding_grad: ids are i32");
    HR_CHECK(acc.dtype == DType::f32 && acc.shape.size() == 2 && !acc.shard,
             "embedding_grad: the accumulator is a whole f32 matrix");
    require_padding(name(), attrs, acc.shape[0]);
    Type dy = computed(inputs[EmbeddingGradInputs::ids], DType::f32);
    dy.shape.push_back(acc.shape[1]);
    require_float_like(name(), "dy", inputs[EmbeddingGradInputs::dy], dy);
    return {acc};
  }

  std::string_view summed_slices() const override { return "accumulator"; }
  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, EmbeddingGradInputs::accumulator, true}}; }

  // The rows named by the ids are read and written. The zero fill of the first iteration is amortised over all of them.
  Work work(const OpCall& call) const override {
    const ConcreteType& dy = call.inputs[EmbeddingGradInputs::dy];
    const double share = share_of(call.attrs), elements = share * static_cast<double>(element_count(dy.dims));
    return {elements, 8 * elements + share * static_cast<double>(storage_bytes(dy))};
  }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

}  // namespace

void register_embedding_ops(OpRegistry& registry) {
  registry.add(std::make_unique<Embedding>());
  registry.add(std::make_unique<EmbeddingGrad>());
}

}  // namespace headroom
