// Per-target activations with their derivatives: GELU, exact and by tanh, and SiLU. Included once per target.
#if defined(HEADROOM_OPS_GELU_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_OPS_GELU_FUNCTIONS_INL_H_
#undef HEADROOM_OPS_GELU_FUNCTIONS_INL_H_
#else
#define HEADROOM_OPS_GELU_FUNCTIONS_INL_H_
#endif

#include "hwy/highway.h"
#include "ops/stream/sigmoid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

// An activation and its derivative at x.
template <class D>
struct ValueAndSlope {
  hn::Vec<D> value;
  hn::Vec<D> slope;
};

// x Phi(x); the slope is Phi(x) + x phi(x).
struct GeluExact {
  template <class D>
  static HWY_INLINE ValueAndSlope<D> at(D d, hn::Vec<D> x) {
    const Normal<D> n = normal(d, x);
    return {hn::Mul(x, n.integral), hn::MulAdd(x, n.density, n.integral)};
  }
};

// x (1 + tanh(u)) / 2 = x sigmoid(2u) with u = sqrt(2/pi) (x + 0.044715 x^3).
struct GeluByTanh {
  template <class D>
  static HWY_INLINE ValueAndSlope<D> at(D d, hn::Vec<D> x) {
    const auto one = hn::Set(d, 1.0f);
    const auto root = hn::Set(d, 1.5957691216057308f);  // 2 sqrt(2/pi)
    const auto square = hn::Mul(x, x);
    const auto u = hn::Mul(hn::Mul(root, x), hn::MulAdd(square, hn::Set(d, 0.044715f), one));
    const auto rise = hn::Mul(root, hn::MulAdd(square, hn::Set(d, 0.134145f), one));
    const auto s = sigmoid(d, u);
    // Beyond 10 the product is below 1e-30, and x * rise may overflow.
    const auto bend = hn::Mul(s, hn::Sub(one, s));
    const auto steep = hn::IfThenZeroElse(hn::Gt(hn::Abs(x), hn::Set(d, 10.0f)), hn::Mul(hn::Mul(x, rise), bend));
    return {hn::Mul(x, s), hn::Add(s, steep)};
  }
};

// x s with s = sigmoid(x); the slope is s (1 + x (1 - s)).
struct Silu {
  template <class D>
  static HWY_INLINE ValueAndSlope<D> at(D d, hn::Vec<D> x) {
    const auto one = hn::Set(d, 1.0f);
    const auto s = sigmoid(d, x);
    return {hn::Mul(x, s), hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one))};
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif
