#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rms_norm/cpu_simd.cpp"
#include <cmath>
#include <cstring>

#include "hwy/foreach_target.h"
#include "ops/rms_norm/simd.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

// The factors of the channels from `at` on: the weight, plus 1 with kUnit.
template <bool kUnit, class D>
HWY_INLINE hn::Vec<D> factors(D d, const float* at) {
  if constexpr (kUnit) return hn::Add(load(d, at), hn::Set(d, 1.0f));
  return load(d, at);
}

template <typename X, typename Y, bool kUnit>
void forward_rows(const RmsNormRows& args, int64_t begin, int64_t end) {
  const float* const w = args.w;
  for (int64_t row = begin; row < end; ++row) {
    const X* const x = static_cast<const X*>(args.x) + row * args.width;
    Y* const y = static_cast<Y*>(args.y) + row * args.width;
    const float squares = sum_lanes(args.width, [&](auto d, int64_t i) HWY_ATTR {
      const auto v = load(d, x + i);
      return hn::Mul(v, v);
    });
    const float r = 1.0f / std::sqrt(squares / static_cast<float>(args.width) + args.eps);
    for_lanes(0, args.width, [&](auto d, int64_t i) HWY_ATTR {
      store(d, hn::Mul(hn::Mul(load(d, x + i), hn::Set(d, r)), factors<kUnit>(d, w + i)), y + i);
    });
  }
}

template <typename X, typename Y>
void forward(const RmsNormRows& args, int64_t begin, int64_t end) {
  args.unit ? forward_rows<X, Y, true>(args, begin, end) : forward_rows<X, Y, false>(args, begin, end);
}

// With xhat = x r and g = dy w: dx = r (g - xhat mean(g xhat)), dw = sum over rows of dy xhat.
template <typename X, typename Dy, bool kUnit, bool kAddend, bool kTrain>
void backward_row(const RmsNormGradRows& args, int64_t row, float* dw) {
  const float* const w = args.w;
  const X* const x = static_cast<const X*>(args.x) + row * args.width;
  const Dy* const dy = static_cast<const Dy*>(args.dy) + row * args.width;
  const X* const addend = kAddend ? static_cast<const X*>(args.addend) + row * args.width : nullptr;
  X* const dx = static_cast<X*>(args.dx) + row * args.width;
  const float width = static_cast<float>(args.width);
  const float squares = sum_lanes(args.width, [&](auto d, int64_t i) HWY_ATTR {
    const auto v = load(d, x + i);
    return hn::Mul(v, v);
  });
  const float product = sum_lanes(args.width, [&](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(hn::Mul(load(d, dy + i), factors<kUnit>(d, w + i)), load(d, x + i));
  });
  const float r = 1.0f / std::sqrt(squares / width + args.eps);
  const float pull = product / width * r * r;  // mean(g xhat) r
  for_lanes(0, args.width, [&](auto d, int64_t i) HWY_ATTR {
    const auto gradient = load(d, dy + i);
    const auto value = load(d, x + i);
    const auto scale = hn::Set(d, r);
    const auto pushed = hn::Mul(gradient, factors<kUnit>(d, w + i));
    auto result = hn::Mul(scale, hn::NegMulAdd(value, hn::Set(d, pull), pushed));
    if constexpr (kAddend) result = hn::Add(result, load(d, addend + i));
    if constexpr (kTrain) store(d, hn::MulAdd(gradient, hn::Mul(value, scale), load(d, dw + i)), dw + i);
    store(d, result, dx + i);
  });
}

template <typename X, typename Dy, bool kUnit>
void backward_rows(const RmsNormGradRows& args, int64_t begin, int64_t end, float* dw) {
  if (dw) std::memset(dw, 0, static_cast<size_t>(args.width) * sizeof(float));
  for (int64_t row = begin; row < end; ++row) {
    if (args.addend)
      dw ? backward_row<X, Dy, kUnit, true, true>(args, row, dw)
         : backward_row<X, Dy, kUnit, true, false>(args, row, dw);
    else
      dw ? backward_row<X, Dy, kUnit, false, true>(args, row, dw)
         : backward_row<X, Dy, kUnit, false, false>(args, row, dw);
  }
}

template <typename X, typename Dy>
void backward(const RmsNormGradRows& args, int64_t begin, int64_t end, float* dw) {
  args.unit ? backward_rows<X, Dy, true>(args, begin, end, dw) : backward_rows<X, Dy, false>(args, begin, end, dw);
}

void rows(const RmsNormRows& args, int64_t begin, int64_t end) {
  with_floats(args.x_dtype, args.y_dtype, [&](auto x, auto y) { forward<decltype(x), decltype(y)>(args, begin, end); });
}

void grad_rows(const RmsNormGradRows& args, int64_t begin, int64_t end, float* dw) {
  with_floats(args.x_dtype, args.dy_dtype,
              [&](auto x, auto dy) { backward<decltype(x), decltype(dy)>(args, begin, end, dw); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(rows);
HWY_EXPORT(grad_rows);

void rms_norm_rows(const RmsNormRows& args, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(rows)(args, begin, end);
}

void rms_norm_grad_rows(const RmsNormGradRows& args, int64_t begin, int64_t end, float* dw) {
  HWY_DYNAMIC_DISPATCH(grad_rows)(args, begin, end, dw);
}

}  // namespace headroom
#endif
