#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/layer_norm/cpu_simd.cpp"
#include <cmath>
#include <cstring>

#include "hwy/foreach_target.h"
#include "ops/layer_norm/simd.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

struct Moments {
  float mean = 0;
  float r = 0;  // rsqrt(variance + eps)
};

template <typename X>
HWY_INLINE Moments moments(const X* x, int64_t width, float eps) {
  const float mean =
      sum_lanes(width, [&](auto d, int64_t i) HWY_ATTR { return load(d, x + i); }) / static_cast<float>(width);
  const float squares = sum_lanes(width, [&](auto d, int64_t i) HWY_ATTR {
    const auto v = hn::Sub(load(d, x + i), hn::Set(d, mean));
    return hn::Mul(v, v);
  });
  return {mean, 1.0f / std::sqrt(squares / static_cast<float>(width) + eps)};
}

template <typename X, typename Y>
void forward(const LayerNormRows& args, int64_t begin, int64_t end) {
  const float* const w = args.w;
  const float* const b = args.b;
  for (int64_t row = begin; row < end; ++row) {
    const X* const x = static_cast<const X*>(args.x) + row * args.width;
    Y* const y = static_cast<Y*>(args.y) + row * args.width;
    const Moments m = moments(x, args.width, args.eps);
    for_lanes(0, args.width, [&](auto d, int64_t i) HWY_ATTR {
      const auto xhat = hn::Mul(hn::Sub(load(d, x + i), hn::Set(d, m.mean)), hn::Set(d, m.r));
      store(d, hn::MulAdd(xhat, load(d, w + i), load(d, b + i)), y + i);
    });
  }
}

// With xhat = (x - mean) r and g = dy w: dx = r (g - mean(g) - xhat mean(g xhat)).
template <typename X, typename Dy, bool kAddend, bool kTrain>
void backward_row(const LayerNormGradRows& args, int64_t row, float* dw, float* db) {
  const float* const w = args.w;
  const X* const x = static_cast<const X*>(args.x) + row * args.width;
  const Dy* const dy = static_cast<const Dy*>(args.dy) + row * args.width;
  const X* const addend = kAddend ? static_cast<const X*>(args.addend) + row * args.width : nullptr;
  X* const dx = static_cast<X*>(args.dx) + row * args.width;
  const float width = static_cast<float>(args.width);
  const Moments m = moments(x, args.width, args.eps);
  const float mean_g =
      sum_lanes(args.width, [&](auto d, int64_t i) HWY_ATTR { return hn::Mul(load(d, dy + i), load(d, w + i)); }) /
      width;
  const float mean_gx = sum_lanes(args.width,
                                  [&](auto d, int64_t i) HWY_ATTR {
                                    const auto centred = hn::Sub(load(d, x + i), hn::Set(d, m.mean));
                                    return hn::Mul(hn::Mul(load(d, dy + i), load(d, w + i)), centred);
                                  }) *
                        m.r / width;
  for_lanes(0, args.width, [&](auto d, int64_t i) HWY_ATTR {
    const auto gradient = load(d, dy + i);
    const auto xhat = hn::Mul(hn::Sub(load(d, x + i), hn::Set(d, m.mean)), hn::Set(d, m.r));
    const auto g = hn::MulSub(gradient, load(d, w + i), hn::Set(d, mean_g));
    auto result = hn::Mul(hn::Set(d, m.r), hn::NegMulAdd(xhat, hn::Set(d, mean_gx), g));
    if constexpr (kAddend) result = hn::Add(result, load(d, addend + i));
    if constexpr (kTrain) {
      store(d, hn::MulAdd(gradient, xhat, load(d, dw + i)), dw + i);
      store(d, hn::Add(gradient, load(d, db + i)), db + i);
    }
    store(d, result, dx + i);
  });
}

template <typename X, typename Dy>
void backward(const LayerNormGradRows& args, int64_t begin, int64_t end, float* dw, float* db) {
  const size_t bytes = static_cast<size_t>(args.width) * sizeof(float);
  if (dw) std::memset(dw, 0, bytes);
  if (db) std::memset(db, 0, bytes);
  for (int64_t row = begin; row < end; ++row) {
    if (args.addend)
      dw ? backward_row<X, Dy, true, true>(args, row, dw, db) : backward_row<X, Dy, true, false>(args, row, dw, db);
    else
      dw ? backward_row<X, Dy, false, true>(args, row, dw, db) : backward_row<X, Dy, false, false>(args, row, dw, db);
  }
}

void rows(const LayerNormRows& args, int64_t begin, int64_t end) {
  with_floats(args.x_dtype, args.y_dtype, [&](auto x, auto y) { forward<decltype(x), decltype(y)>(args, begin, end); });
}

void grad_rows(const LayerNormGradRows& args, int64_t begin, int64_t end, float* dw, float* db) {
  with_floats(args.x_dtype, args.dy_dtype,
              [&](auto x, auto dy) { backward<decltype(x), decltype(dy)>(args, begin, end, dw, db); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(rows);
HWY_EXPORT(grad_rows);

void layer_norm_rows(const LayerNormRows& args, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(rows)(args, begin, end);
}

void layer_norm_grad_rows(const LayerNormGradRows& args, int64_t begin, int64_t end, float* dw, float* db) {
  HWY_DYNAMIC_DISPATCH(grad_rows)(args, begin, end, dw, db);
}

}  // namespace headroom
#endif
