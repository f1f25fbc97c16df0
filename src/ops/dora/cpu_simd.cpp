#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/dora/cpu_simd.cpp"
#include <algorithm>
#include <cmath>

#include "hwy/foreach_target.h"
#include "ops/dora/shape.h"
#include "ops/dora/simd.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

// Elements i .. of kRows rows of the adapted weight: weight + factor * b a. Adds their squares to `squares`.
template <size_t kRows, class D, typename W, typename M>
HWY_INLINE void add_squares(D d, const LengthRows& rows, int64_t first, int64_t i, hn::Vec<D>* HWY_RESTRICT squares) {
  const W* const weight = static_cast<const W*>(rows.weight) + first * rows.ins + i;
  const M* const a = static_cast<const M*>(rows.a) + i;
  const M* const b = static_cast<const M*>(rows.b) + first * rows.rank;
  hn::Vec<D> sums[kRows];
  HWY_UNROLL(4) for (size_t r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
  for (int64_t k = 0; k < rows.rank; ++k) {
    const auto row = load(d, a + k * rows.ins);
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; ++r)
      sums[r] = hn::MulAdd(hn::Set(d, static_cast<float>(b[static_cast<int64_t>(r) * rows.rank + k])), row, sums[r]);
  }
  const auto factor = hn::Set(d, rows.factor);
  HWY_UNROLL(4) for (size_t r = 0; r < kRows; ++r) {
    const auto value = hn::MulAdd(factor, sums[r], load(d, weight + static_cast<int64_t>(r) * rows.ins));
    squares[r] = hn::MulAdd(value, value, squares[r]);
  }
}

template <size_t kRows, typename W, typename M>
void lengths_at(const LengthRows& rows, int64_t first) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> wide[kRows];
  HWY_UNROLL(4) for (size_t r = 0; r < kRows; ++r) wide[r] = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= rows.ins; i += lanes) add_squares<kRows, decltype(d), W, M>(d, rows, first, i, wide);
  const hn::CappedTag<float, 1> one;
  hn::Vec<decltype(one)> rest[kRows];
  HWY_UNROLL(4) for (size_t r = 0; r < kRows; ++r) rest[r] = hn::Zero(one);
  for (; i < rows.ins; ++i) add_squares<kRows, decltype(one), W, M>(one, rows, first, i, rest);
  HWY_UNROLL(4) for (size_t r = 0; r < kRows; ++r) {
    const float squares = hn::GetLane(hn::SumOfLanes(d, wide[r])) + hn::GetLane(rest[r]);
    rows.lengths[first + static_cast<int64_t>(r)] = std::sqrt(squares);
  }
}

void lengths(const LengthRows& rows) {
  with_floats(rows.weight_dtype, rows.dtype, [&](auto w, auto m) {
    using W = decltype(w);
    using M = decltype(m);
    int64_t row = 0;
    for (; row + kLengthRows <= rows.count; row += kLengthRows) lengths_at<kLengthRows, W, M>(rows, row);
    for (; row < rows.count; ++row) lengths_at<1, W, M>(rows, row);
  });
}

constexpr int64_t kColumns = 256;  // whose factors are computed at a time

// magnitude / length, 0 where the length is 0.
HWY_INLINE void factors_of(const float* magnitude, const float* length, int64_t count, float* factors) {
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
    const auto below = load(d, length + i);
    store(d, hn::IfThenZeroElse(hn::Eq(below, hn::Zero(d)), hn::Div(load(d, magnitude + i), below)), factors + i);
  });
}

template <typename Z, typename Y, bool kBias, bool kResidual>
void forward_rows(const MagnitudeRows& args, int64_t begin, int64_t end) {
  float factors[kColumns];
  for (int64_t column = 0; column < args.width; column += kColumns) {
    const int64_t count = std::min(kColumns, args.width - column);
    factors_of(args.magnitude + column, args.lengths + column, count, factors);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * args.width + column;
      const Z* const z = static_cast<const Z*>(args.z) + at;
      Y* const y = static_cast<Y*>(args.y) + at;
      for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
        auto value = hn::Mul(load(d, z + i), load(d, factors + i));
        if constexpr (kBias) value = hn::Add(value, load(d, args.bias + column + i));
        if constexpr (kResidual) value = hn::Add(value, load(d, static_cast<const Y*>(args.residual) + at + i));
        store(d, value, y + i);
      });
    }
  }
}

void forward(const MagnitudeRows& args, int64_t begin, int64_t end) {
  with_floats(args.z_dtype, args.y_dtype, [&](auto z, auto y) {
    using Z = decltype(z);
    using Y = decltype(y);
    if (args.bias)
      args.residual ? forward_rows<Z, Y, true, true>(args, begin, end)
                    : forward_rows<Z, Y, true, false>(args, begin, end);
    else
      args.residual ? forward_rows<Z, Y, false, true>(args, begin, end)
                    : forward_rows<Z, Y, false, false>(args, begin, end);
  });
}

template <typename D, typename Z>
void backward_rows(const MagnitudeGradRows& args, int64_t begin, int64_t end, float* sums) {
  float factors[kColumns];
  std::fill_n(sums, args.width, 0.0f);
  for (int64_t column = 0; column < args.width; column += kColumns) {
    const int64_t count = std::min(kColumns, args.width - column);
    factors_of(args.magnitude + column, args.lengths + column, count, factors);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * args.width + column;
      const D* const dy = static_cast<const D*>(args.dy) + at;
      const Z* const z = static_cast<const Z*>(args.z) + at;
      Z* const dz = static_cast<Z*>(args.dz) + at;
      for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
        const auto gradient = load(d, dy + i);
        store(d, hn::MulAdd(gradient, load(d, z + i), load(d, sums + column + i)), sums + column + i);
        store(d, hn::Mul(gradient, load(d, factors + i)), dz + i);
      });
    }
    factors_of(sums + column, args.lengths + column, count, sums + column);
  }
}

void backward(const MagnitudeGradRows& args, int64_t begin, int64_t end, float* sums) {
  with_floats(args.dy_dtype, args.z_dtype,
              [&](auto dy, auto z) { backward_rows<decltype(dy), decltype(z)>(args, begin, end, sums); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(lengths);
HWY_EXPORT(forward);
HWY_EXPORT(backward);

void lengths_of_rows(const LengthRows& rows) { HWY_DYNAMIC_DISPATCH(lengths)(rows); }

void scale_rows(const MagnitudeRows& args, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(forward)(args, begin, end);
}

void scale_rows_grad(const MagnitudeGradRows& args, int64_t begin, int64_t end, float* sums) {
  HWY_DYNAMIC_DISPATCH(backward)(args, begin, end, sums);
}

}  // namespace headroom
#endif
