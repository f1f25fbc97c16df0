// Rows of bf16 on AMX tiles, with a dense weight.
#include "base/error.h"
#include "base/threads.h"
#include "ops/cpu/amx_walk.h"
#include "ops/linear/amx_columns.h"

namespace headroom {

#ifdef HEADROOM_HAS_AMX
namespace {

constexpr int64_t kBlock = 2 * kTileLanes;  // rows of x, or columns, that are multiplied together

// More rows of x than a block: columns are multiplied by all of them in slices of the depth, which stay in the
// first-level cache. Between slices the sums of kKeptRows rows are kept.
constexpr int64_t kSlice = 256;  // elements, about
constexpr int64_t kKeptRows = 256;
constexpr int64_t kBlockSums = kBlock * kBlock;

// A part of the depth.
struct Slice {
  int64_t first, last;
};

// Elements of each slice of the depth but the last: even parts.
inline int64_t slice_of(int64_t ins) {
  const int64_t slices = std::max<int64_t>(1, (ins + kSlice / 2) / kSlice);
  return align_up((ins + slices - 1) / slices, kTileStep);
}

// Prefetches the weight some steps ahead.
struct InOrder {
  const uint16_t* w;
  int64_t ins, columns;
  HEADROOM_AMX_INLINE void step(int64_t i) const {
    if (i < ins - kHeldSteps * kTileStep) prefetch_columns(w, ins * 2, columns, i * 2);
  }
};

// Prefetches the slice behind this one.
struct NextSlice {
  amx::Walk lines;
  HEADROOM_AMX_INLINE void step(int64_t) { lines.step<0, 2>(); }
};

// Tiles 0-3: sums[column tile][tile of x], `pair` bytes from column to column.
template <int kColumnTiles, int kRowTiles>
HEADROOM_AMX_INLINE inline void clear_sums() {
  _tile_zero(0);
  if constexpr (kRowTiles > 1) _tile_zero(1);
  if constexpr (kColumnTiles > 1) _tile_zero(2);
  if constexpr (kColumnTiles > 1 && kRowTiles > 1) _tile_zero(3);
}

template <int kColumnTiles, int kRowTiles>
HEADROOM_AMX_INLINE inline void load_sums(const float* sums, int64_t pair) {
  _tile_loadd(0, sums, pair);
  if constexpr (kRowTiles > 1) _tile_loadd(1, sums + kTileSums, pair);
  if constexpr (kColumnTiles > 1) _tile_loadd(2, sums + kRowTiles * kTileSums, pair);
  if constexpr (kColumnTiles > 1 && kRowTiles > 1) _tile_loadd(3, sums + 3 * kTileSums, pair);
}

template <int kColumnTiles, int kRowTiles>
HEADROOM_AMX_INLINE inline void store_sums(float* sums, int64_t pair) {
  _tile_stored(0, sums, pair);
  if constexpr (kRowTiles > 1) _tile_stored(1, sums + kTileSums, pair);
  if constexpr (kColumnTiles > 1) _tile_stored(2, sums + kRowTiles * kTileSums, pair);
  if constexpr (kColumnTiles > 1 && kRowTiles > 1) _tile_stored(3, sums + 3 * kTileSums, pair);
}

// Adds the products of a slice to the sums of those before it. In slices x passes the first-level cache by.
template <int kColumnTiles, int kRowTiles, bool kInSlices, typename Ahead>
HEADROOM_AMX_INLINE inline void multiply(const uint16_t* w, int64_t ins, const TiledRows& rows, const Slice& slice,
                                         Ahead& ahead, float* sums) {
  const int64_t stride = ins * 2, pair = rows.pair_bytes;
  const std::byte* x = rows.x + slice.first / kTileStep * rows.step_bytes();
  slice.first == 0 ? clear_sums<kColumnTiles, kRowTiles>() : load_sums<kColumnTiles, kRowTiles>(sums, pair);
  for (int64_t i = slice.first; i < slice.last; i += kTileStep, x += rows.step_bytes()) {
    ahead.step(i);
    if constexpr (kInSlices) {
      _tile_stream_loadd(4, x, pair);
    } else {
      _tile_loadd(4, x, pair);
    }
    _tile_loadd(6, w + i, stride);
    _tile_dpbf16ps(0, 6, 4);
    if constexpr (kRowTiles > 1) {
      if constexpr (kInSlices) {
        _tile_stream_loadd(5, x + ins * 2 * kTileLanes, pair);
      } else {
        _tile_loadd(5, x + ins * 2 * kTileLanes, pair);
      }
      _tile_dpbf16ps(1, 6, 5);
    }
    if constexpr (kColumnTiles > 1) {
      _tile_loadd(7, w + kTileLanes * ins + i, stride);
      _tile_dpbf16ps(2, 7, 4);
      if constexpr (kRowTiles > 1) _tile_dpbf16ps(3, 7, 5);
    }
  }
  store_sums<kColumnTiles, kRowTiles>(sums, pair);
  amx::order_memory();
}

// The rows of a block of x that begins at `row`, at most `end`.
struct Block {
  int64_t row, rows;
  Block(int64_t first, int64_t end) : row(first), rows(std::min(kBlock, end - first)) {}
  int row_tiles() const { return rows > kTileLanes ? 2 : 1; }
};

template <int kColumnTiles, bool kInSlices, typename Ahead>
HEADROOM_AMX_INLINE inline void multiply_block(const RowProduct& call, const uint16_t* w, const Block& block,
                                               const Slice& slice, Ahead& ahead, float* sums) {
  const TiledRows rows = tiled_rows_at(call, block.row);
  (block.row_tiles() == 2 ? multiply<kColumnTiles, 2, kInSlices, Ahead>
                          : multiply<kColumnTiles, 1, kInSlices, Ahead>)(w, call.ins, rows, slice, ahead, sums);
}

// Writes a block's sums. held(tile, i) is called for each held step of each tile.
template <typename R, int kColumnTiles, typename Held>
HEADROOM_AMX_INLINE inline void finish_block(const RowProduct& call, const Block& block, int64_t out, int64_t columns,
                                             const float* sums, const Held& held) {
  const int row_tiles = block.row_tiles();
  for (int tile = 0; tile < kColumnTiles * row_tiles; ++tile) {
    const int64_t first = tile % row_tiles * kTileLanes;
    finish_columns<R>(call, block.row + first, std::min(kTileLanes, block.rows - first),
                      out + tile / row_tiles * kTileLanes, columns, sums + tile * kTileSums,
                      [&](int64_t i) HEADROOM_AMX { held(tile, i); });
  }
}

// Columns from `out` on of a block of x, in one or two tiles, the last of which has `columns` columns.
template <typename R, int kColumnTiles>
HEADROOM_AMX void block_columns(const RowProduct& call, int64_t out, int64_t columns) {
  alignas(64) float sums[kBlockSums];
  const auto* const w = static_cast<const uint16_t*>(call.w) + out * call.ins;
  const Block block(0, call.rows);
  InOrder ahead{w, call.ins, kColumnTiles * kTileLanes};
  multiply_block<kColumnTiles, false>(call, w, block, {0, call.ins}, ahead, sums);
  finish_block<R, kColumnTiles>(call, block, out, columns, sums, [&](int tile, int64_t i) HEADROOM_AMX {
    const int64_t at = call.ins - (kHeldSteps - i) * kTileStep;
    if (tile == 0) prefetch_columns(w, call.ins * 2, kColumnTiles * kTileLanes, at * 2);
  });
}

// What is read after a slice of columns: the next one, or the first of the next columns, which exist if `more`.
template <int kColumnTiles>
HEADROOM_AMX_INLINE inline NearLines behind_slice(const RowProduct& call, const uint16_t* w, const Slice& slice,
                                                  bool more) {
  constexpr int64_t kColumns = kColumnTiles * kTileLanes;
  const bool last = slice.last == call.ins;
  if (last && !more) return {};
  const int64_t first = last ? kColumns * call.ins : slice.last;
  const int64_t elements = std::min(slice_of(call.ins), last ? call.ins : call.ins - slice.last);
  return {reinterpret_cast<const std::byte*>(w + first), call.ins * 2, kColumns, elements * 2 / 64};
}

// The same of more rows than a block. `end`: of the range of columns.
template <typename R, int kColumnTiles>
HEADROOM_AMX void columns_in_slices(const RowProduct& call, int64_t out, int64_t columns, int64_t end) {
  alignas(64) float sums[kKeptRows / kBlock * kBlockSums];
  const auto* const w = static_cast<const uint16_t*>(call.w) + out * call.ins;
  const bool more = out + 2 * kColumnTiles * kTileLanes <= end;
  const int64_t step = slice_of(call.ins);
  for (int64_t begin = 0; begin < call.rows; begin += kKeptRows) {
    const int64_t rows_end = std::min(call.rows, begin + kKeptRows), blocks = (rows_end - begin + kBlock - 1) / kBlock;
    const auto sums_of = [&](int64_t row) { return sums + (row - begin) / kBlock * kBlockSums; };
    for (int64_t first = 0; first < call.ins; first += step) {
      const Slice slice{first, std::min(call.ins, first + step)};
      const NearLines next = behind_slice<kColumnTiles>(call, w, slice, more && rows_end == call.rows);
      NextSlice ahead{amx::Walk(next, blocks * (slice.last - slice.first) / kTileStep)};
      for (int64_t row = begin; row < rows_end; row += kBlock)
        multiply_block<kColumnTiles, true>(call, w, Block(row, rows_end), slice, ahead, sums_of(row));
    }
    for (int64_t row = begin; row < rows_end; row += kBlock)
      finish_block<R, kColumnTiles>(call, Block(row, rows_end), out, columns, sums_of(row), [](int, int64_t) {});
  }
}

template <typename R, int kColumnTiles>
HEADROOM_AMX_INLINE inline void tile_columns(const RowProduct& call, int64_t out, int64_t columns, int64_t end) {
  call.rows > kBlock ? columns_in_slices<R, kColumnTiles>(call, out, columns, end)
                     : block_columns<R, kColumnTiles>(call, out, columns);
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
    for (; out + kBlock <= end; out += kBlock) tile_columns<R, 2>(call, out, kTileLanes, end);
  for (; out + kTileLanes <= end; out += kTileLanes) tile_columns<R, 1>(call, out, kTileLanes, end);
  if (out < end) {
    enter_columns(call, end - out);
    tile_columns<R, 1>(call, out, end - out, end);
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
