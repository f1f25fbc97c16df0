// What the kernels of tile_rows.h share: tiles 0-3 hold sums [columns][rows of x], 4-5 x, 6-7 the weight. Only
// functions marked HEADROOM_AMX may call it; empty if HEADROOM_HAS_AMX stays undefined.
#pragma once

#include <array>

#include "ops/cpu/amx.h"
#include "ops/linear/dot_bf16.h"
#include "ops/linear/tile_rows.h"

#ifdef HEADROOM_HAS_AMX

namespace headroom {

constexpr int64_t kTileSums = kTileLanes * kTileLanes;

// Tiles for `columns` rows of the weight; for a single row of x, its tiles are one pair of elements wide.
constexpr amx::TileConfig column_config(int columns, bool single) {
  amx::TileConfig config = amx::eight_full_tiles();
  for (int tile = 0; tile < 8; ++tile) {
    if (tile != 4 && tile != 5) config.rows[tile] = static_cast<uint8_t>(columns);
    if (tile < 6 && single) config.row_bytes[tile] = 4;
  }
  return config;
}

constexpr std::array<amx::TileConfig, kTileLanes> column_configs(bool single) {
  std::array<amx::TileConfig, kTileLanes> configs;
  for (int columns = 1; columns <= kTileLanes; ++columns)
    configs[static_cast<size_t>(columns) - 1] = column_config(columns, single);
  return configs;
}

inline constexpr std::array<amx::TileConfig, kTileLanes> kSingleConfigs = column_configs(true),
                                                         kSeveralConfigs = column_configs(false);

HEADROOM_AMX inline void enter_columns(const RowProduct& call, int64_t columns) {
  _tile_loadconfig(&(call.arranged ? kSeveralConfigs : kSingleConfigs)[static_cast<size_t>(columns) - 1]);
}

// Rows of x as an operand: tiles of sixteen rows, or a single row.
struct TiledRows {
  const std::byte* x = nullptr;
  int64_t pair_bytes = 64;  // from pair to pair

  int64_t step_bytes() const { return kTileLanes * pair_bytes; }
};

inline TiledRows tiled_rows_at(const RowProduct& call, int64_t row) {
  if (!call.arranged) return {static_cast<const std::byte*>(call.x), 4};
  return {static_cast<const std::byte*>(call.arranged) + row * call.ins * 2};
}

constexpr int64_t kBytesAhead = 768;

// Prefetches what `columns` rows of the weight store at byte `at` and some steps further on, behind the end of a row in
// the columns that follow. One of `parts` parts of the rows.
HEADROOM_AMX_INLINE inline void prefetch_columns(const void* w, int64_t row_bytes, int64_t columns, int64_t at,
                                                 int64_t part = 0, int64_t parts = 1) {
  at += kBytesAhead;
  if (at >= row_bytes) at += (columns - 1) * row_bytes;
  for (int64_t i = columns * part / parts; i < columns * (part + 1) / parts; ++i)
    _mm_prefetch(static_cast<const char*>(w) + i * row_bytes + at, _MM_HINT_T0);
}

// What prefetch_columns() leaves out before the first columns.
HEADROOM_AMX inline void prefetch_first(const void* w, int64_t row_bytes, int64_t columns) {
  for (int64_t at = -kBytesAhead; at < 0; at += 64) prefetch_columns(w, row_bytes, columns, at);
}

// The last steps over a row, whose prefetches are spread over finish_columns(): else memory would wait meanwhile.
constexpr int64_t kHeldSteps = 3;

struct NoHeldStep {
  HEADROOM_AMX_INLINE void operator()(int64_t) const {}
};

// Writes a tile of sums, of which `columns` columns and `rows` rows exist, to y. Calls held(i) for each held step.
template <typename R, typename Held = NoHeldStep>
HEADROOM_AMX void finish_columns(const RowProduct& call, int64_t row, int64_t rows, int64_t out, int64_t columns,
                                 const float* sums, const Held& held = {}) {
  held(0);
  if (!call.arranged) {
    held(1), held(2);
    return finish<R>(call, row, 1, out, columns, sums, kTileLanes);
  }
  alignas(64) float by_row[kTileSums];
  store_turned([&](int i) HEADROOM_AVX512_BF16 { return _mm512_load_si512(sums + i * kTileLanes); }, by_row);
  held(1);
  const int64_t half = rows / 2;
  finish<R>(call, row, half, out, columns, by_row, kTileLanes);
  held(2);
  finish<R>(call, row + half, rows - half, out, columns, by_row + half * kTileLanes, kTileLanes);
}

}  // namespace headroom

#endif  // HEADROOM_HAS_AMX
