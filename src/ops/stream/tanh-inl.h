// Per-target hyperbolic tangent. Included once per target.
#if defined(HEADROOM_OPS_STREAM_TANH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_OPS_STREAM_TANH_INL_H_
#undef HEADROOM_OPS_STREAM_TANH_INL_H_
#else
#define HEADROOM_OPS_STREAM_TANH_INL_H_
#endif

#include "hwy/highway.h"
#include "ops/stream/sigmoid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Relative error below 2e-7; NaN stays NaN. Near zero x + x^3 P(x^2), P of degree 4 interpolating at the Chebyshev
// nodes of |x| <= 0.64; beyond it (1 - e) / (1 + e) with e = exp(-2|x|).
template <class D>
HWY_INLINE hn::Vec<D> tanh_of(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0f);
  const auto size = hn::Abs(x), square = hn::Mul(x, x);
  auto p = hn::MulAdd(hn::Set(d, -0.005992961254f), square, hn::Set(d, 0.02092414818f));
  p = hn::MulAdd(p, square, hn::Set(d, -0.05383514126f));
  p = hn::MulAdd(p, square, hn::Set(d, 0.1333266348f));
  p = hn::MulAdd(p, square, hn::Set(d, -0.3333332786f));
  const auto near = hn::MulAdd(hn::Mul(x, square), p, x);
  const auto e = exp_negative(d, hn::Mul(size, hn::Set(d, -2.0f)));
  const auto far = hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
  const auto result = hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.64f)), near, far);
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif
