#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/adafactor/cpu_simd.cpp"
#include <cmath>

#include "hwy/foreach_target.h"
#include "ops/adafactor/simd.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/random_lanes-inl.h"
#include "ops/stream/updated_weight-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

// (clip g)^2 + eps1
template <class D>
HWY_INLINE hn::Vec<D> square(D d, const AdafactorStep& s, const float* g) {
  const auto clipped = hn::Mul(load(d, g), hn::Set(d, s.clip));
  return hn::MulAdd(clipped, clipped, hn::Set(d, s.eps1));
}

void cols(const AdafactorArrays& a, const AdafactorShape& shape, const AdafactorStep& step, int64_t matrix,
          int64_t begin, int64_t end) {
  const AdafactorStep s = step;
  float sums[kAdafactorCols];
  const float* const g = a.g + matrix * shape.rows * shape.cols + begin;
  for_lanes(0, end - begin, [&](auto d, int64_t i) HWY_ATTR { store(d, square(d, s, g + i), sums + i); });
  for (int64_t row = 1; row < shape.rows; ++row) {
    const float* const next = g + row * shape.cols;
    for_lanes(0, end - begin, [&](auto d, int64_t i) HWY_ATTR {
      store(d, hn::Add(load(d, sums + i), square(d, s, next + i)), sums + i);
    });
  }
  float* const squares = a.col_squares + matrix * shape.cols + begin;
  float* const factors = a.col_factors + matrix * shape.cols + begin;
  const float share = s.fresh / static_cast<float>(shape.rows), kept = 1 - s.fresh;
  for_lanes(0, end - begin, [&](auto d, int64_t i) HWY_ATTR {
    const auto fresh = hn::Mul(load(d, sums + i), hn::Set(d, share));
    const auto mean = hn::MulAdd(load(d, squares + i), hn::Set(d, kept), fresh);
    store(d, mean, squares + i);
    store(d, hn::Div(hn::Set(d, 1.0f), hn::Sqrt(mean)), factors + i);
  });
}

void row(const AdafactorArrays& a, const AdafactorShape& shape, const AdafactorStep& step, int64_t at) {
  const AdafactorStep s = step;
  const float* const g = a.g + at * shape.cols;
  const float sum = sum_lanes(shape.cols, [&](auto d, int64_t i) HWY_ATTR { return square(d, s, g + i); });
  a.row_squares[at] = (1 - s.fresh) * a.row_squares[at] + s.fresh * (sum / static_cast<float>(shape.cols));
}

// The update before clipping.
template <class D>
HWY_INLINE hn::Vec<D> unclipped(D d, float row_factor, const float* g, const float* factors) {
  return hn::Mul(hn::Mul(load(d, factors), hn::Set(d, row_factor)), load(d, g));
}

template <class K>
float weight_squares(const UpdatedWeight& weight, int64_t first, int64_t count) {
  return sum_lanes(count, [&](auto d, int64_t i) HWY_ATTR {
    const auto w = load_weight(K(), d, weight, first + i);
    return hn::Mul(w, w);
  });
}

void row_sums(const AdafactorArrays& a, const AdafactorShape& shape, const AdafactorStep& s, int64_t at) {
  const float* const g = a.g + at * shape.cols;
  const float* const factors = a.col_factors + at / shape.rows * shape.cols;
  const float row_factor = a.row_factors[at] * s.clip;
  a.row_sums[2 * at] = sum_lanes(shape.cols, [&](auto d, int64_t i) HWY_ATTR {
    const auto u = unclipped(d, row_factor, g + i, factors + i);
    return hn::Mul(u, u);
  });
  if (!s.scales) return;
  const int64_t first = at * shape.cols;
  float& sum = a.row_sums[2 * at + 1];
  if (a.weight.wide)
    sum = weight_squares<KeptWide>(a.weight, first, shape.cols);
  else
    with_narrow(a.weight.dtype,
                [&](auto type) { sum = weight_squares<KeptNarrow<decltype(type)>>(a.weight, first, shape.cols); });
}

template <class K>
void move_range(const AdafactorArrays& arrays, const AdafactorStep& step, const AdafactorMove& of, uint64_t key,
                const float* factors, float scale, int64_t begin, int64_t end) {
  const AdafactorArrays a = arrays;
  const AdafactorStep s = step;
  const AdafactorMove m = of;
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    auto u = unclipped(d, scale, a.g + i, factors + i);
    if (a.moment) {
      const auto fresh = hn::Mul(u, hn::Set(d, 1 - s.beta1));
      u = hn::MulAdd(load(d, a.moment + i), hn::Set(d, s.beta1), fresh);
      store(d, u, a.moment + i);
    }
    const auto w = load_weight(K(), d, a.weight, i);
    const auto kept = hn::NegMulAdd(hn::Set(d, s.decay * m.rate), w, w);
    store_weight(K(), d, hn::Sub(kept, u), a.weight, i, key);
  });
}

void move(const AdafactorArrays& a, const AdafactorShape& shape, const AdafactorStep& step, const AdafactorMove& of,
          int64_t at) {
  const int64_t first = at * shape.cols;
  // Indexed by element of the weight: the factor of the element's column.
  const float* const factors = a.col_factors + at / shape.rows * shape.cols - first;
  const float scale = a.row_factors[at] * step.clip * of.scale;
  for_weight(a.weight, of.key, first, first + shape.cols, [&](auto kept, uint64_t key, int64_t from, int64_t to) {
    move_range<decltype(kept)>(a, step, of, key, factors, scale, from, to);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(cols);
HWY_EXPORT(row);
HWY_EXPORT(row_sums);
HWY_EXPORT(move);

void adafactor_cols(const AdafactorArrays& arrays, const AdafactorShape& shape, const AdafactorStep& step,
                    int64_t matrix, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(cols)(arrays, shape, step, matrix, begin, end);
}

void adafactor_row(const AdafactorArrays& arrays, const AdafactorShape& shape, const AdafactorStep& step, int64_t at) {
  HWY_DYNAMIC_DISPATCH(row)(arrays, shape, step, at);
}

void adafactor_row_sums(const AdafactorArrays& arrays, const AdafactorShape& shape, const AdafactorStep& step,
                        int64_t at) {
  HWY_DYNAMIC_DISPATCH(row_sums)(arrays, shape, step, at);
}

void adafactor_move(const AdafactorArrays& arrays, const AdafactorShape& shape, const AdafactorStep& step,
                    const AdafactorMove& of, int64_t at) {
  HWY_DYNAMIC_DISPATCH(move)(arrays, shape, step, of, at);
}

}  // namespace headroom
#endif
