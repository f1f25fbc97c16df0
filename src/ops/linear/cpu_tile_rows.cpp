// Rows of bf16 on AMX tiles, with a dense weight.
#include "base/error.h"
#include "base/threads.h"
#include "ops/linear/amx_columns.h"

namespace headroom {

#ifdef HEADROOM_HAS_AMX
namespace {

// What is prefetched while columns are multiplied: in the first pass over them the weight some steps ahead, if there is
// no other pass or its rows are long; else the next columns in every pass, line by line.
struct Prefetch {
  bool in_order = true;
  const char* at = nullptr;
  const char* end = nullptr;
  int64_t lines = 0;  // at each step

  HEADROOM_AMX_INLINE void step(const uint16_t* w, int64_t ins, int64_t columns, int64_t i) {
    if (in_order) {
      if (i < ins - kHeldSteps * kTileStep) prefetch_columns(w, ins * 2, columns, i * 2);
      return;
    }
    if (at >= end) return;
    for (int64_t line = 0; line < lines; ++line, at += 64) _mm_prefetch(at, _MM_HINT_T1);
  }
};

// sums[column tile][tile of x]
template <int kColumnTiles, int kRowTiles>
HEADROOM_AMX_INLINE inline void multiply(const uint16_t* w, int64_t ins, const TiledRows& rows, Prefetch& prefetch,
                                         float* sums) {
  const int64_t stride = ins * 2, pair = rows.pair_bytes;
  const std::byte* x = rows.x;
  _tile_zero(0);
  if constexpr (kRowTiles > 1) _tile_zero(1);
  if constexpr (kColumnTiles > 1) _tile_zero(2);
  if constexpr (kColumnTiles > 1 && kRowTiles > 1) _tile_zero(3);
  for (int64_t i = 0; i < ins; i += kTileStep, x += rows.step_bytes()) {
    prefetch.step(w, ins, kColumnTiles * kTileLanes, i);
    _tile_loadd(4, x, pair);
    _tile_loadd(6, w + i, stride);
    _tile_dpbf16ps(0, 6, 4);
    if constexpr (kRowTiles > 1) {
      _tile_loadd(5, x + ins * 2 * kTileLanes, pair);
      _tile_dpbf16ps(1, 6, 5);
    }
    if constexpr (kColumnTiles > 1) {
      _tile_loadd(7, w + kTileLanes * ins + i, stride);
      _tile_dpbf16ps(2, 7, 4);
      if constexpr (kRowTiles > 1) _tile_dpbf16ps(3, 7, 5);
    }
  }
  _tile_stored(0, sums, pair);
  if constexpr (kRowTiles > 1) _tile_stored(1, sums + kTileSums, pair);
  if constexpr (kColumnTiles > 1) _tile_stored(2, sums + kRowTiles * kTileSums, pair);
  if constexpr (kColumnTiles > 1 && kRowTiles > 1) _tile_stored(3, sums + 3 * kTileSums, pair);
  amx::order_memory();
}

// Columns from `out` on of all rows of x, in one or two tiles, the last of which has `columns` columns.
template <typename R, int kColumnTiles>
HEADROOM_AMX void tile_columns(const RowProduct& call, int64_t out, int64_t columns, Prefetch prefetch) {
  alignas(64) float sums[4 * kTileSums];
  const auto* const w = static_cast<const uint16_t*>(call.w) + out * call.ins;
  for (int64_t row = 0; row < call.rows; row += 2 * kTileLanes) {
    const TiledRows rows = tiled_rows_at(call, row);
    const int row_tiles = call.rows - row > kTileLanes ? 2 : 1;
    (row_tiles == 2 ? multiply<kColumnTiles, 2> : multiply<kColumnTiles, 1>)(w, call.ins, rows, prefetch, sums);
    const bool holds = prefetch.in_order;
    prefetch.in_order = false;
    for (int tile = 0; tile < kColumnTiles * row_tiles; ++tile) {
      const int64_t first = row + tile % row_tiles * kTileLanes;
      finish_columns<R>(call, first, std::min(kTileLanes, call.rows - first), out + tile / row_tiles * kTileLanes,
                        columns, sums + tile * kTileSums, [&](int64_t i) HEADROOM_AMX {
                          if (!holds || tile > 0) return;
                          const int64_t at = call.ins - (kHeldSteps - i) * kTileStep;
                          prefetch_columns(w, call.ins * 2, kColumnTiles * kTileLanes, at * 2);
                        });
    }
  }
}

constexpr int64_t kLongRow =
    2560;  // so many columns of longer rows do not stay in the second-level cache with the next

Prefetch prefetch_behind(const RowProduct& call, int64_t out, int64_t columns, int64_t end) {
  const int64_t passes = (call.rows + 2 * kTileLanes - 1) / (2 * kTileLanes);
  Prefetch prefetch;
  prefetch.in_order = passes == 1 || call.ins > kLongRow;
  if (prefetch.in_order || out + 2 * columns > end) return prefetch;
  prefetch.at = static_cast<const char*>(call.w) + (out + columns) * call.ins * 2;
  prefetch.end = prefetch.at + columns * call.ins * 2;
  prefetch.lines = std::max<int64_t>(1, columns / passes);
  return prefetch;
}

// Few rows take one tile of columns at a time: their time is that of reading the weight.
template <typename R>
HEADROOM_AMX void range_on_tiles(const RowProduct& call, int64_t begin, int64_t end) {
  amx::order_memory();
  enter_columns(call, kTileLanes);
  prefetch_first(static_cast<const uint16_t*>(call.w) + begin * call.ins, call.ins * 2,
                 std::min(kTileLanes, end - begin));
  int64_t out = begin;
  if (call.rows > kTileLanes)
    for (constexpr int64_t kTwo = 2 * kTileLanes; out + kTwo <= end; out += kTwo)
      tile_columns<R, 2>(call, out, kTileLanes, prefetch_behind(call, out, kTwo, end));
  for (; out + kTileLanes <= end; out += kTileLanes)
    tile_columns<R, 1>(call, out, kTileLanes, prefetch_behind(call, out, kTileLanes, end));
  if (out < end) {
    enter_columns(call, end - out);
    tile_columns<R, 1>(call, out, end - out, prefetch_behind(call, out, kTileLanes, end));
  }
  amx::leave_tiles();
}

HEADROOM_AMX void arrange_tile_rows(const uint16_t* x, int64_t rows, int64_t ins, std::byte* to) {
  for (int64_t i = 0; i < ins; i += kTileStep, to += amx::kTileBytes)
    store_turned(
        [&](int row) HEADROOM_AVX512_BF16 {
          return row < rows ? _mm512_loadu_si512(x + row * ins + i) : _mm512_setzero_si512();
        },
        to);
}

}  // namespace

void arrange_tiles(const void* x, int64_t rows, int64_t ins, void* to) {
  parallel_for((rows + kTileLanes - 1) / kTileLanes, 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      arrange_tile_rows(static_cast<const uint16_t*>(x) + i * kTileLanes * ins, rows - i * kTileLanes, ins,
                        static_cast<std::byte*>(to) + i * kTileLanes * ins * 2);
  });
}

ColumnRange tile_range(DType y) {
  HR_CHECK(amx::tiles_permitted(), "the system does not permit AMX");
  return y == DType::f32 ? range_on_tiles<float> : range_on_tiles<bfloat16>;
}

#else

void arrange_tiles(const void*, int64_t, int64_t, void*) { throw InternalError("no AMX on this machine"); }
ColumnRange tile_range(DType) { throw InternalError("no AMX on this machine"); }

#endif

}  // namespace headroom
