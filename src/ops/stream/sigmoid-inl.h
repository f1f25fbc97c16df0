// Per-target exponential, logistic function and normal distribution. Included once per target.
#if defined(HEADROOM_OPS_STREAM_SIGMOID_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_OPS_STREAM_SIGMOID_INL_H_
#undef HEADROOM_OPS_STREAM_SIGMOID_INL_H_
#else
#define HEADROOM_OPS_STREAM_SIGMOID_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The hardware's estimate of 1 / x. A single element gets the estimate of whole vectors, because AVX-512 has another
// instruction for shorter ones: so a result does not depend on the position of its element.
template <class D>
HWY_INLINE hn::Vec<D> estimated_reciprocal(D d, hn::Vec<D> x) {
  const hn::ScalableTag<float> whole;
  if constexpr (hn::MaxLanes(D()) > 1 || hn::MaxLanes(whole) == 1) return hn::ApproximateReciprocal(x);
  return hn::Set(d, hn::GetLane(hn::ApproximateReciprocal(hn::Set(whole, hn::GetLane(x)))));
}

// 1 / x for 1 <= x <= 1e9. On x86 the hardware's estimate, of 12 bits or more, and one step of Newton's method; on
// others, whose estimates have fewer bits (NEON 8), a division.
template <class D>
HWY_INLINE hn::Vec<D> reciprocal(D d, hn::Vec<D> x) {
  if constexpr (!HWY_ARCH_X86) return hn::Div(hn::Set(d, 1.0f), x);
  const auto guess = estimated_reciprocal(d, x);
  return hn::Mul(guess, hn::NegMulAdd(x, guess, hn::Set(d, 2.0f)));
}

// exp(x) for x <= 0; below -86 and for NaN it is 0. With n = round(x / ln 2), r = x - n ln 2: exp(x) = 2^n P(r), P of
// degree 6 interpolating at the Chebyshev nodes of |r| <= ln(2)/2 (relative error below 3e-9 before rounding).
template <class D>
HWY_INLINE hn::Vec<D> exp_negative(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> whole;
  const auto magic = hn::Set(d, 12582912.0f);  // 1.5 * 2^23: the sum's low bits are the rounded integer
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const auto n = hn::Sub(shifted, magic);
  // ln 2 in two parts, the first with few bits so that its product with n is exact.
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  auto p = hn::Set(d, 0.001394110843f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.008375126398f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0416663529f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.1666641551f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5000000047f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.000000038f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(whole, shifted));
  const auto result = hn::BitCast(d, hn::Add(hn::BitCast(whole, p), exponent));
  return hn::IfThenElseZero(hn::Ge(x, hn::Set(d, -86.0f)), result);
}

// 1 / (1 + exp(-x)); exactly 0 or 1 far from zero. NaN gives some number: the callers multiply by x.
template <class D>
HWY_INLINE hn::Vec<D> sigmoid(D d, hn::Vec<D> x) {
  const auto e = exp_negative(d, hn::Neg(hn::Abs(x)));
  const auto upper = reciprocal(d, hn::Add(e, hn::Set(d, 1.0f)));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(e, upper), upper);
}

// The standard normal distribution at x: its density and its integral.
template <class D>
struct Normal {
  hn::Vec<D> density;
  hn::Vec<D> integral;
};

// With z = |x|/sqrt(2) and t = 1/(1 + 0.3 z): erfc(z) = exp(-z^2) t P(t), P of degree 8 interpolating at the Chebyshev
// nodes of 0 <= z <= 9.5 (relative error below 2.5e-8 before rounding).
template <class D>
HWY_INLINE Normal<D> normal(D d, hn::Vec<D> x) {
  const auto z = hn::Mul(hn::Min(hn::Abs(x), hn::Set(d, 20.0f)), hn::Set(d, 0.70710678f));
  const auto t = reciprocal(d, hn::MulAdd(z, hn::Set(d, 0.3f), hn::Set(d, 1.0f)));
  auto p = hn::Set(d, -0.1304928155175956f);
  p = hn::MulAdd(p, t, hn::Set(d, 0.490571597952697f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.5233146560840795f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.5612462019645728f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.10471214098658921f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.21956711481804858f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.1470454190870776f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.17091415625888984f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.16917510260815957f));
  const auto bell = exp_negative(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f)));
  const auto tail = hn::Mul(hn::Mul(hn::Set(d, 0.5f), bell), hn::Mul(t, p));  // erfc(z) / 2
  const auto below = hn::Lt(x, hn::Zero(d));
  return {hn::Mul(bell, hn::Set(d, 0.39894228f)), hn::IfThenElse(below, tail, hn::Sub(hn::Set(d, 1.0f), tail))};
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif
