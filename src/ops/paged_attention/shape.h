// The sizes of a call of attention_paged, and where its keys lie.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ir/op.h"
#include "ops/paged_attention/int8_heads.h"

namespace headroom {

// The inputs of attention_paged.
struct PagedInputs {
  enum : int { q, keys, values, tables, owners, offset };
};

struct PagedShape {
  int64_t rows = 0;  // of q
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t dim = 0;           // of one head
  int64_t head_width = 0;    // elements of the pool that it takes: dim, and in an int8 pool its scale
  int64_t pool_rows = 0;     // blocks * block_tokens
  int64_t tables = 0;        // sequences
  int64_t table_blocks = 0;  // of one sequence
  int64_t block_tokens = 1;
  int64_t window = 0;  // the most keys that a row sees, itself included; 0 = no limit
  double scale = 1;
  double softcap = 0;  // c > 0: a scaled score s becomes c tanh(s / c)

  // Query heads per kv head.
  int64_t group() const { return heads / kv_heads; }
  int64_t row_width() const { return kv_heads * head_width; }  // of the pool
  // Positions that a table covers.
  int64_t positions() const { return table_blocks * block_tokens; }
  // A row at `position` sees the keys [keys_begin, keys_end).
  int64_t keys_begin(int64_t position) const { return window > 0 ? std::max<int64_t>(0, position - window + 1) : 0; }
  int64_t keys_end(int64_t position) const { return position + 1; }
};

// Of a call that infer() has accepted.
inline PagedShape paged_shape(const OpCall& call) {
  PagedShape shape;
  shape.rows = call.inputs[PagedInputs::q].dims[0];
  shape.heads = call.attrs.integer("heads");
  shape.kv_heads = call.attrs.integer("kv_heads");
  shape.dim = call.inputs[PagedInputs::q].dims[2] / shape.heads;
  shape.head_width = pool_head_width(call.inputs[PagedInputs::keys].dtype, shape.dim);
  shape.pool_rows = call.inputs[PagedInputs::keys].dims[1];
  shape.tables = call.inputs[PagedInputs::tables].dims[0];
  shape.table_blocks = call.inputs[PagedInputs::tables].dims[1];
  shape.block_tokens = call.attrs.integer("block_tokens");
  shape.window = call.attrs.integer("window");
  shape.scale = call.attrs.real("scale", 1.0 / std::sqrt(static_cast<double>(shape.dim)));
  shape.softcap = call.attrs.real("softcap", 0);
  return shape;
}

// A call at run time.
struct PagedCall {
  PagedShape shape;
  DType q_dtype = DType::f32;
  DType kv_dtype = DType::f32;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;  // of q's dtype
  const int32_t* tables = nullptr;
  const int32_t* owners = nullptr;
  const int32_t* offset = nullptr;
  std::byte* scratch = nullptr;

  // The position of row `row` in its sequence, at most the last one of its table; negative: a row of padding.
  int64_t position(int64_t row) const {
    const bool owned = owners[row] >= 0 && owners[row] < shape.tables;
    return owned ? std::min<int64_t>(offset[row], shape.positions() - 1) : -1;
  }
  // The pool's row for a position of sequence `owner`, inside the pool for any table entry.
  int64_t pool_row(int64_t owner, int64_t position) const {
    const int64_t blocks = shape.pool_rows / shape.block_tokens;
    const int64_t block = tables[owner * shape.table_blocks + position / shape.block_tokens];
    return std::clamp<int64_t>(block, 0, blocks - 1) * shape.block_tokens + position % shape.block_tokens;
  }
};

}  // namespace headroom
