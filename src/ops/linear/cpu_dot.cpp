// Dot products of rows in f32 lanes. The lanes are added at the end.
#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/cpu_dot.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include "base/error.h"
#include "hwy/cache_control.h"
#include "ops/cpu/capabilities.h"
#include "ops/linear/finish_tile-inl.h"
#include "ops/linear/row_products.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

// Rows of x and of w in a tile, whose sums fill the registers.
#if HWY_TARGET <= HWY_AVX3
constexpr int kTileRows = 4, kTileOuts = 6;
#else
constexpr int kTileRows = 3, kTileOuts = 4;
#endif
constexpr int kRowOuts = 8;  // rows of w for a single row of x

// Prefetches what is read next, a few cache lines per vector.
struct Ahead {
  const char* at = nullptr;
  int64_t lines = 0;

  HWY_INLINE void step() {
    for (int64_t i = 0; i < lines; ++i, at += 64) hwy::Prefetch(at);
  }
};

template <int kOuts, int kCount, typename T, typename W, class D, class V>
HWY_INLINE void add_step(D d, const W* w, const T* x, int64_t ins, V* total) {
  V right[kOuts];
  HWY_UNROLL(8)
  for (int out = 0; out < kOuts; ++out) right[out] = load_rounded<T>(d, w + out * ins);
  HWY_UNROLL(8)
  for (int row = 0; row < kCount; ++row) {
    const V left = load(d, x + row * ins);
    HWY_UNROLL(8)
    for (int out = 0; out < kOuts; ++out)
      total[row * kOuts + out] = hn::MulAdd(right[out], left, total[row * kOuts + out]);
  }
}

// sums[row][out] for kCount consecutive rows of x and kOuts consecutive rows of w.
template <int kOuts, int kCount, typename T, typename W>
void dot(const W* w, const T* x, int64_t ins, Ahead ahead, float* sums) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> total[kOuts * kCount];
  HWY_UNROLL(32)
  for (int i = 0; i < kOuts * kCount; ++i) total[i] = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= ins; i += lanes) {
    ahead.step();
    add_step<kOuts, kCount>(d, w + i, x + i, ins, total);
  }
  HWY_UNROLL(32)
  for (int of = 0; of < kOuts * kCount; ++of) sums[of] = hn::GetLane(hn::SumOfLanes(d, total[of]));
  for (; i < ins; ++i)
    for (int row = 0; row < kCount; ++row)
      for (int out = 0; out < kOuts; ++out) {
        float& sum = sums[row * kOuts + out];
        const auto right = load_rounded<T>(one, w + out * ins + i);
        sum = hn::GetLane(hn::MulAdd(right, load(one, x + row * ins + i), hn::Set(one, sum)));
      }
}

// A tile of `count` rows of x, at most kTileRows.
template <int kOuts, typename T, typename W>
void dot_some(int64_t count, const W* w, const T* x, int64_t ins, Ahead ahead, float* sums) {
  if (count == 1) return dot<kOuts, 1>(w, x, ins, ahead, sums);
  if (count == 2) return dot<kOuts, 2>(w, x, ins, ahead, sums);
  if (count == 3) return dot<kOuts, 3>(w, x, ins, ahead, sums);
  if constexpr (kTileRows > 3) return dot<kOuts, 4>(w, x, ins, ahead, sums);
}

template <typename T, typename W, typename R>
void dot_columns(const RowProduct& call, int64_t begin, int64_t end) {
  const T* const x = static_cast<const T*>(call.x);
  const W* const w = static_cast<const W*>(call.w);
  const int64_t vectors = call.ins / static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  const int64_t column_lines = call.ins * static_cast<int64_t>(sizeof(W)) / 64;
  float sums[kTileRows * kTileOuts];
  // The tiles of the first rows of x prefetch the next rows of w.
  const int64_t steps = (call.rows + kTileRows - 1) / kTileRows * std::max<int64_t>(1, vectors);
  const int64_t tile_lines = (kTileOuts * column_lines + steps - 1) / steps,
                row_lines = (kRowOuts * column_lines + steps - 1) / steps;
  const auto ahead_of = [&](int64_t row, int64_t out, int64_t outs) -> Ahead {
    const int64_t lines = outs == kTileOuts ? tile_lines : row_lines, skipped = row / kTileRows * lines * vectors;
    if (skipped >= outs * column_lines || out + 2 * outs > end) return {};
    return {reinterpret_cast<const char*>(w + (out + outs) * call.ins) + skipped * 64, lines};
  };
  if (call.rows == 1)
    for (; begin + kRowOuts <= end; begin += kRowOuts) {
      dot<kRowOuts, 1>(w + begin * call.ins, x, call.ins, ahead_of(0, begin, kRowOuts), sums);
      finish_tile<R>(call, 0, 1, begin, kRowOuts, sums);
    }
  const auto tile = [&](int64_t row, int64_t rows, int64_t out, int64_t outs) {
    const T* const of = x + row * call.ins;
    if (outs == kTileOuts) {
      dot_some<kTileOuts>(rows, w + out * call.ins, of, call.ins, ahead_of(row, out, outs), sums);
      return finish_tile<R>(call, row, rows, out, outs, sums);
    }
    for (; outs > 0; --outs, ++out) {
      dot_some<1>(rows, w + out * call.ins, of, call.ins, Ahead{}, sums);
      finish_tile<R>(call, row, rows, out, 1, sums);
    }
  };
  each_dot_tile<kTileRows, kTileOuts>(call.rows, call.ins * static_cast<int64_t>(sizeof(T)), begin, end, tile);
}

ColumnRange range_of(const RowTypes& types) {
  return range_of_types(
      types, [](auto x, auto w, auto y) -> ColumnRange { return dot_columns<decltype(x), decltype(w), decltype(y)>; });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(range_of);

ColumnRange dot_range(const RowTypes& types, const Capabilities& capabilities) {
  if (types.x == DType::bf16 && capabilities.has(kAvx512Bf16)) return bf16_dot_range(types.w, types.y);
  return HWY_DYNAMIC_DISPATCH(range_of)(types);
}

}  // namespace headroom
#endif
