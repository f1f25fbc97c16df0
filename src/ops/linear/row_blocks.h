// Rows of bf16 in blocks of sixteen, for products of many rows with a weight that is read as it is stored: a lane of a
// vector is a row of x, so that the sixteen lanes of a sum (dot_bf16.h) are sixteen vectors, and adding them takes no
// shuffle. The bits are those of dot_bf16.h. x is arranged once for all columns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "ops/cpu/capabilities.h"
#include "ops/linear/row_products.h"
#include "ops/linear/tile_rows.h"

namespace headroom {

constexpr int64_t kBlockRows = 16;
constexpr int64_t kLeastBlockRows = 12;  // a block with fewer of them takes longer than they do in tiles of dot_bf16.h

// How many of `rows` rows are multiplied in blocks, the last of which may lack a few; the others follow them.
inline int64_t rows_in_blocks(int64_t rows) {
  const int64_t rest = rows % kBlockRows;
  return rest < kLeastBlockRows ? rows - rest : rows;
}

// The rows that are arranged at a time: whole blocks that stay in the second-level cache.
inline int64_t arranged_rows(int64_t rows, int64_t ins) {
  constexpr int64_t kCacheBytes = int64_t{1} << 19;
  const int64_t most = std::max<int64_t>(1, kCacheBytes / (2 * ins * kBlockRows)) * kBlockRows;
  return std::min(most, align_up(rows, kBlockRows));
}

inline bool runs_in_blocks(const RowTypes& types, int64_t ins, const Capabilities& capabilities) {
  return types.x == DType::bf16 && types.w == DType::bf16 && capabilities.has(kAvx512Bf16) && ins > 0 && ins % 32 == 0;
}

// Scratch for x in tiles or blocks, in bytes; 0: these rows are read as they are stored.
inline int64_t arranged_bytes(const RowTypes& types, int64_t rows, int64_t ins, const Capabilities& capabilities) {
  if (runs_on_tiles(types, ins, capabilities)) return tiled_bytes(rows, ins);
  if (!runs_in_blocks(types, ins, capabilities) || rows < kLeastBlockRows) return 0;
  return arranged_rows(rows, ins) * ins * 2;
}

// Writes rows_in_blocks(rows) rows of x [rows, ins] to `to` in blocks; a block that lacks rows is filled up with zeros.
// The threads share the blocks. ins is a multiple of 32, `to` is aligned to 64 bytes.
void arrange_rows(const void* x, int64_t rows, int64_t ins, void* to);

// Columns begin .. end of the rows of call.arranged; end - begin is a multiple of kBlockRows. For y in bf16 or f32.
ColumnRange block_range(DType y);

}  // namespace headroom
