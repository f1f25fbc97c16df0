// Per-target logistic function and normal distribution. Included once per target.
#if defined(HEADROOM_OPS_STREAM_SIGMOID_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_OPS_STREAM_SIGMOID_INL_H_
#undef HEADROOM_OPS_STREAM_SIGMOID_INL_H_
#else
#define HEADROOM_OPS_STREAM_SIGMOID_INL_H_
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// 1 / (1 + exp(-x)). A NaN gives some number: the callers multiply by x.
template <class D>
HWY_INLINE hn::Vec<D> sigmoid(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0f);
  const auto minus = hn::Min(hn::Neg(x), hn::Set(d, 88.0f));  // exp(88) is finite
  return hn::Div(one, hn::Add(one, hn::Exp(d, minus)));
}

// The standard normal distribution at x: its density and its integral.
template <class D>
struct Normal {
  hn::Vec<D> density;
  hn::Vec<D> integral;
};

// With z = |x|/sqrt(2) and t = 1/(1 + 0.3 z): erfc(z) = exp(-z^2) t P(t), P of degree 8 interpolating in the Chebyshev
// nodes of 0 <= z <= 9.5 (relative error below 2.5e-8 before rounding).
template <class D>
HWY_INLINE Normal<D> normal(D d, hn::Vec<D> x) {
  const auto z = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678f));
  const auto t = hn::Div(hn::Set(d, 1.0f), hn::MulAdd(z, hn::Set(d, 0.3f), hn::Set(d, 1.0f)));
  auto p = hn::Set(d, -0.1304928155175956f);
  p = hn::MulAdd(p, t, hn::Set(d, 0.490571597952697f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.5233146560840795f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.5612462019645728f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.10471214098658921f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.21956711481804858f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.1470454190870776f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.17091415625888984f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.16917510260815957f));
  const auto bell = hn::Exp(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f)));
  const auto tail = hn::Mul(hn::Mul(hn::Set(d, 0.5f), bell), hn::Mul(t, p));  // erfc(z) / 2
  const auto below = hn::Lt(x, hn::Zero(d));
  return {hn::Mul(bell, hn::Set(d, 0.39894228f)), hn::IfThenElse(below, tail, hn::Sub(hn::Set(d, 1.0f), tail))};
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif
