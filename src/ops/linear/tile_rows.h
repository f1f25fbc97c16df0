// Products of rows of bf16 with a weight that is read as it is stored, on AMX tiles: sixteen rows of the weight are one
// operand, the other is sixteen rows of x, arranged once for all columns so that a row of a tile has a pair of elements
// of each. Every sum takes 32 elements of its row of x and its row of the weight at a time, in order, so that its bits
// depend on nothing else.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "ops/cpu/capabilities.h"
#include "ops/linear/row_products.h"

namespace headroom {

constexpr int64_t kTileLanes = 16;  // rows of the weight, or of x, in a tile
constexpr int64_t kTileStep = 32;   // elements of a row in a tile

inline bool runs_on_tiles(const RowTypes& types, int64_t ins, const Capabilities& capabilities) {
  return types.x == DType::bf16 && types.w == DType::bf16 && capabilities.has(kAmx) && ins > 0 && ins % kTileStep == 0;
}

// The rows of x that are arranged at a time, in even parts that stay in the second-level cache.
inline int64_t tiled_rows(int64_t rows, int64_t ins) {
  constexpr int64_t kCacheBytes = int64_t{3} << 19;
  const int64_t most = std::max<int64_t>(1, kCacheBytes / (2 * ins * 2 * kTileLanes)) * 2 * kTileLanes;
  const int64_t parts = (rows + most - 1) / most;
  return align_up((rows + parts - 1) / parts, kTileLanes);
}

// Scratch for x in tiles, in bytes. A single row is read as it is stored.
inline int64_t tiled_bytes(int64_t rows, int64_t ins) { return rows <= 1 ? 0 : tiled_rows(rows, ins) * ins * 2; }

// Rows of a weight in blocks of codes that are decoded at a time.
inline int64_t decoded_tile_rows(int64_t rows) { return rows <= kTileLanes ? kTileLanes : 2 * kTileLanes; }

// Writes rows of x [rows, ins] to `to` in tiles [16 rows][32 elements], each as [pair][row]; rows that are missing in
// the last are zeros. The threads share the tiles. `to` is aligned to 64 bytes.
void arrange_tiles(const void* x, int64_t rows, int64_t ins, void* to);

// For y in bf16 or f32; needs AMX. call.arranged: x in tiles, unless it is a single row. Subnormal numbers count as
// zero.
ColumnRange tile_range(DType y);

}  // namespace headroom
