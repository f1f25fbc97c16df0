// Products of rows with a weight [ins, outs], as sums of multiples of the weight's rows, in their order.
#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/cpu_combine.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include <algorithm>

#include "base/error.h"
#include "ops/linear/row_products.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

// Rows of x and vectors of columns whose sums stay in registers. A single row reads longer pieces of w.
#if HWY_TARGET <= HWY_AVX3
constexpr int kRows = 6, kVectors = 4, kVectorsOfOne = 16;
#else
constexpr int kRows = 3, kVectors = 4, kVectorsOfOne = 8;
#endif

template <class D, typename R>
HWY_INLINE void put(D d, const RowProduct& call, int64_t row, int64_t out, hn::Vec<D> sum) {
  const int64_t at = row * call.outs + out;
  if (call.bias) sum = hn::Add(sum, load(d, call.bias + out));
  if (call.residual) sum = hn::Add(sum, load(d, static_cast<const R*>(call.residual) + at));
  store(d, sum, static_cast<R*>(call.y) + at);
}

// A tile of y: kCount rows by kWide vectors of columns.
template <int kCount, int kWide, typename T, typename W, typename R, class D>
HWY_INLINE void combine(D d, const RowProduct& call, int64_t row, int64_t out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* const x = static_cast<const T*>(call.x) + row * call.ins;
  const W* w = static_cast<const W*>(call.w) + out;
  hn::Vec<D> sums[kCount][kWide];
  HWY_UNROLL(8)
  for (int r = 0; r < kCount; ++r) {
    HWY_UNROLL(16)
    for (int i = 0; i < kWide; ++i) sums[r][i] = hn::Zero(d);
  }
  for (int64_t k = 0; k < call.ins; ++k, w += call.outs) {
    hn::Vec<D> right[kWide];
    HWY_UNROLL(16)
    for (int i = 0; i < kWide; ++i) right[i] = load_rounded<T>(d, w + i * lanes);
    HWY_UNROLL(8)
    for (int r = 0; r < kCount; ++r) {
      const auto left = hn::Set(d, static_cast<float>(x[r * call.ins + k]));
      HWY_UNROLL(16)
      for (int i = 0; i < kWide; ++i) sums[r][i] = hn::MulAdd(left, right[i], sums[r][i]);
    }
  }
  HWY_UNROLL(8)
  for (int r = 0; r < kCount; ++r) {
    HWY_UNROLL(16)
    for (int i = 0; i < kWide; ++i) put<D, R>(d, call, row + r, out + i * lanes, sums[r][i]);
  }
}

template <typename T, typename W, typename R>
void combine_columns(const RowProduct& call, int64_t begin, int64_t end) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto rows = [&](auto tag, auto wide, int64_t out) {
    constexpr int kWide = decltype(wide)::value;
    int64_t row = 0;
    for (; row + kRows <= call.rows; row += kRows) combine<kRows, kWide, T, W, R>(tag, call, row, out);
    for (; row < call.rows; ++row) combine<1, kWide, T, W, R>(tag, call, row, out);
  };
  int64_t out = begin;
  if (call.rows == 1)
    for (; out + kVectorsOfOne * lanes <= end; out += kVectorsOfOne * lanes)
      combine<1, kVectorsOfOne, T, W, R>(d, call, 0, out);
  for (; out + kVectors * lanes <= end; out += kVectors * lanes) rows(d, std::integral_constant<int, kVectors>{}, out);
  for (; out + lanes <= end; out += lanes) rows(d, std::integral_constant<int, 1>{}, out);
  for (; out < end; ++out) rows(one, std::integral_constant<int, 1>{}, out);
}

ColumnRange range_of(const RowTypes& types) {
  return range_of_types(types, [](auto x, auto w, auto y) -> ColumnRange {
    return combine_columns<decltype(x), decltype(w), decltype(y)>;
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(range_of);

ColumnRange combine_range(const RowTypes& types) { return HWY_DYNAMIC_DISPATCH(range_of)(types); }

}  // namespace headroom
#endif
