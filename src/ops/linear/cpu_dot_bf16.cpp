// Dot products of bf16 rows with a dense weight.
#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "ops/linear/dot_bf16.h"
#include "ops/linear/row_blocks.h"

namespace headroom {

#ifdef HEADROOM_HAS_AVX512
namespace {

// Rows of a weight of elements W: bf16, or f32 that are rounded to it.
template <typename W>
using RowsOf = std::conditional_t<std::is_same_v<W, float>, RoundedRows, DenseRows>;

template <int kOuts, int kCount, typename W>
HEADROOM_AVX512_BF16 void dot(const W* w, const uint16_t* x, int64_t ins, Ahead ahead, float* sums) {
  const RowsOf<W> weight{w, ins};
  __m512 total[kSumsOf<kOuts, kCount>];
  add_steps<kOuts, kCount>(weight, x, ins, ahead, total);
  if (const int64_t rest = ins % kDotStep; rest > 0)
    add_step<kOuts, kCount>(weight, x, ins, ins - rest, total, first_words(rest));
  store_all_sums<kOuts, kCount>(total, sums);
}

template <typename W>
using TileDot = void (*)(const W* w, const uint16_t* x, int64_t ins, Ahead ahead, float* sums);

template <typename W, typename R>
void dot_tiles(const RowProduct& call, int64_t begin, int64_t end) {
  constexpr TileDot<W> kWide[] = {dot<6, 1, W>, dot<6, 2, W>, dot<6, 3, W>, dot<6, 4, W>};
  constexpr TileDot<W> kNarrow[] = {dot<1, 1, W>, dot<1, 2, W>, dot<1, 3, W>, dot<1, 4, W>};
  constexpr int64_t kLines = kDotStep * static_cast<int64_t>(sizeof(W)) / 64;  // of a row of w, per step
  const auto* const x = static_cast<const uint16_t*>(call.x);
  const auto* const w = static_cast<const W*>(call.w);
  const auto tile = [&](TileDot<W> run, int64_t row, int64_t rows, int64_t out, int64_t outs, Ahead ahead) {
    alignas(64) float sums[kDotRows * kDotOuts];
    run(w + out * call.ins, x + row * call.ins, call.ins, ahead, sums);
    finish<R>(call, row, rows, out, outs, sums, outs);
  };
  const auto tiles = [&](int64_t row, int64_t rows, int64_t out, int64_t outs) {
    if (outs < kDotOuts) {
      for (int64_t i = 0; i < outs; ++i) tile(kNarrow[rows - 1], row, rows, out + i, 1, {});
      return;
    }
    // The tiles of the first rows prefetch the next columns.
    const int64_t count = (call.rows + kDotRows - 1) / kDotRows, lines = (kLines * kDotOuts + count - 1) / count;
    const int64_t skipped = row / kDotRows * lines * (call.ins / kDotStep) * 64;
    const int64_t next = kDotOuts * call.ins * static_cast<int64_t>(sizeof(W));
    Ahead ahead;
    if (skipped < next && out + 2 * kDotOuts <= end)
      ahead = {reinterpret_cast<const char*>(w + (out + kDotOuts) * call.ins) + skipped, lines};
    tile(kWide[rows - 1], row, rows, out, outs, ahead);
  };
  if (call.rows == 1) {
    int64_t out = begin;
    for (; out + kDotRowOuts <= end; out += kDotRowOuts)
      tile(dot<kDotRowOuts, 1, W>, 0, 1, out, kDotRowOuts,
           {reinterpret_cast<const char*>(w + (out + kDotRowOuts) * call.ins), kLines * kDotRowOuts});
    begin = out;
  }
  each_dot_tile<kDotRows, kDotOuts>(call.rows, 2 * call.ins, begin, end, tiles);
}

// Blocks of rows if x is arranged in them, then the rows and columns that fill no block. Rows that follow blocks take a
// few columns at a time, whose weights are in the cache.
template <typename R>
void dot_columns(const RowProduct& call, int64_t begin, int64_t end) {
  if (!call.arranged) return dot_tiles<uint16_t, R>(call, begin, end);
  constexpr DType kY = std::is_same_v<R, float> ? DType::f32 : DType::bf16;
  RowProduct blocks = call;
  blocks.rows = rows_in_blocks(call.rows);
  const RowProduct others = rows_from(call, blocks.rows, DType::bf16, kY);
  const int64_t last = end - (end - begin) % kBlockRows, most = others.rows > 0 ? 4 * kBlockRows : end - begin;
  for (int64_t out = begin; out < last; out += most) {
    const int64_t to = std::min(last, out + most);
    block_range(kY)(blocks, out, to);
    if (others.rows > 0) dot_tiles<uint16_t, R>(others, out, to);
  }
  if (last < end) dot_tiles<uint16_t, R>(call, last, end);
}

}  // namespace

ColumnRange bf16_dot_range(DType w, DType y) {
  if (w == DType::f32) return y == DType::f32 ? dot_tiles<float, float> : dot_tiles<float, bfloat16>;
  return y == DType::f32 ? dot_columns<float> : dot_columns<bfloat16>;
}

#else

ColumnRange bf16_dot_range(DType, DType) { throw InternalError("no products of bf16 on this machine"); }

#endif

}  // namespace headroom
