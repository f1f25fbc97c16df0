// Rules of the two ops of a paged key-value cache: a pool of blocks that sequences share, and for each sequence a table
// of the blocks that hold it.
//
// Attributes of attention_paged: heads, kv_heads, window (0: none), scale (1 / sqrt(head dim) when absent), softcap (0
// or absent: none), block_tokens.
//
// A pool is f32, bf16, f16, or i8: codes with a scale for each kv head of each row (int8_heads.h).
#include <memory>

#include "base/error.h"
#include "ops/attention/cache_append.h"
#include "ops/paged_attention/shape.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

// The width of a [rows, 1, width] or [1, rows, width] operand, whose dimension `single` is 1.
int64_t last_width(std::string_view op, std::string_view what, const Type& type, size_t single) {
  HR_CHECK(type.shape.size() == 3 && type.shape[single] == Dim::of(1), "{}: dimension {} of {} is 1", op, single, what);
  return constant_dim(op, what, type.shape[2]);
}

int64_t paged_width(std::string_view op, std::string_view what, const Type& type) {
  require_float(op, what, type, 3);
  return last_width(op, what, type, 1);
}

int64_t pool_width(std::string_view op, std::string_view what, const Type& type) {
  if (type.dtype != DType::i8) require_float(op, what, type, 3);
  return last_width(op, what, type, 0);
}

// (rows, pool, slots) -> pool: row r of [rows, 1, width] becomes row slots[r] of the pool [1, positions, width]; a row
// with a slot outside the pool is dropped. The slots inside the pool are distinct. The number of kv heads of an i8 pool
// follows from the width of its rows, which is `width` plus a scale per head.
class KvAppendPaged final : public CacheAppend {
 public:
  std::string_view name() const override { return "kv_append_paged"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"rows", "cache", "slots"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    require_inputs(name(), inputs, 3);
    const int64_t width = paged_width(name(), "the rows", inputs[CacheAppendInputs::rows]);
    const int64_t held = pool_width(name(), "the pool", inputs[CacheAppendInputs::cache]);
    const int64_t heads = inputs[CacheAppendInputs::cache].dtype == DType::i8 ? (held - width) / kHeadScaleBytes : 1;
    HR_CHECK(heads >= 1 && width % heads == 0 &&
                 held == heads * pool_head_width(inputs[CacheAppendInputs::cache].dtype, width / heads),
             "kv_append_paged: the pool has no rows of {}", width);
    require_whole(name(), "the slots", inputs[CacheAppendInputs::places], DType::i32,
                  {inputs[CacheAppendInputs::rows].shape[0]});
    return {inputs[CacheAppendInputs::cache]};
  }
};

// (q, k_pool, v_pool, tables, owners, offset) -> o. Row r of q [rows, 1, heads * dim] is at position offset[r] of
// sequence owners[r] and sees that sequence up to its own position. Position p of sequence s is row p % block_tokens of
// block tables[s][p / block_tokens] of the pools. A row with a negative offset, or an owner without a table, reads
// nothing and gets zeros. The result of a row does not depend on the other rows, nor on which blocks its sequence uses.
class AttentionPaged final : public Op {
 public:
  std::string_view name() const override { return "attention_paged"; }
  OperandNames operands(const Attrs&, size_t) const override {
    return {"q", "k_cache", "v_cache", "tables", "owners", "offset"};
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 6);
    const Type &q = inputs[PagedInputs::q], &k = inputs[PagedInputs::keys], &tables = inputs[PagedInputs::tables];
    const int64_t heads = attrs.integer("heads"), kv_heads = attrs.integer("kv_heads");
    HR_CHECK(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, "{}: {} heads do not share {} kv heads", name(), heads,
             kv_heads);
    const int64_t width = paged_width(name(), "q", q);
    HR_CHECK(width % heads == 0, "{}: a row of {} is not divided by {} heads", name(), width, heads);
    HR_CHECK(pool_width(name(), "the pool of keys", k) == kv_heads * pool_head_width(k.dtype, width / heads),
             "{}: the pool has no rows of {} kv heads of {}", name(), kv_heads, width / heads);
    require_type(name(), "the pool of values", inputs[PagedInputs::values], k);
    check_attributes(attrs);
    HR_CHECK(k.shape[1].symbol >= 0 || k.shape[1].constant % attrs.integer("block_tokens") == 0,
             "{}: {} rows of the pool are not whole blocks", name(), k.shape[1].constant);
    HR_CHECK(tables.shape.size() == 2, "{}: tables are i32[sequences, blocks]", name());
    require_whole(name(), "the tables", tables, DType::i32, tables.shape);
    require_whole(name(), "the owners", inputs[PagedInputs::owners], DType::i32, {q.shape[0]});
    require_whole(name(), "the offset", inputs[PagedInputs::offset], DType::i32, {q.shape[0]});
    return {Type{q.dtype, q.shape}};
  }

  // As if the sequences had equal numbers of rows, and each filled an equal share of the pool.
  Work work(const OpCall& call) const override {
    const PagedShape shape = paged_shape(call);
    const double keys = static_cast<double>(std::max<int64_t>(1, shape.pool_rows / std::max<int64_t>(1, shape.tables)));
    const double seen = shape.window > 0 ? std::min(keys, static_cast<double>(shape.window)) : keys;
    const double kept = std::min(seen * static_cast<double>(shape.tables), static_cast<double>(shape.pool_rows));
    Work work{4.0 * seen * static_cast<double>(shape.dim * shape.heads * shape.rows)};
    work.bytes = 2 * static_cast<double>(storage_bytes(call.inputs[PagedInputs::q])) +
                 2 * kept * static_cast<double>(shape.row_width() * dtype_bytes(call.inputs[PagedInputs::keys].dtype));
    return work;
  }
  CostClass cost_class() const override { return CostClass::attention; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }

 private:
  void check_attributes(const Attrs& attrs) const {
    HR_CHECK(attrs.integer("block_tokens") >= 1, "{}: blocks of {} tokens", name(), attrs.integer("block_tokens"));
    HR_CHECK(attrs.integer("causal", 1) != 0, "{} is causal", name());
    HR_CHECK(attrs.integer("window") >= 0, "{}: window {} is negative", name(), attrs.integer("window"));
    HR_CHECK(attrs.real("scale", 1.0) > 0, "{}: the scale must be positive", name());
    HR_CHECK(attrs.real("softcap", 0.0) >= 0, "{}: softcap is {}", name(), attrs.real("softcap", 0.0));
  }
};

}  // namespace

void register_paged_attention_ops(OpRegistry& registry) {
  registry.add(std::make_unique<KvAppendPaged>());
  registry.add(std::make_unique<AttentionPaged>());
}

}  // namespace headroom
