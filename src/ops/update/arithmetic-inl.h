// The formulas' arithmetic per target: vectors of f32. Included once per target, after lanes-inl.h.
#if defined(HEADROOM_OPS_UPDATE_ARITHMETIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_OPS_UPDATE_ARITHMETIC_INL_H_
#undef HEADROOM_OPS_UPDATE_ARITHMETIC_INL_H_
#else
#define HEADROOM_OPS_UPDATE_ARITHMETIC_INL_H_
#endif

#include "hwy/highway.h"
#include "ops/update/formula.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
struct UpdateLanes {
  using V = hn::Vec<D>;
  D d;

  HWY_INLINE V set(float c) const { return hn::Set(d, c); }
  HWY_INLINE V add(V a, V b) const { return hn::Add(a, b); }
  HWY_INLINE V mul(V a, V b) const { return hn::Mul(a, b); }
  HWY_INLINE V div(V a, V b) const { return hn::Div(a, b); }
  HWY_INLINE V mul_add(V a, V b, V c) const { return hn::MulAdd(a, b, c); }
  HWY_INLINE V neg_mul_add(V a, V b, V c) const { return hn::NegMulAdd(a, b, c); }
  HWY_INLINE V sqrt(V a) const { return hn::Sqrt(a); }
  HWY_INLINE V sign(V a) const { return hn::IfThenElseZero(hn::Ne(a, hn::Zero(d)), hn::CopySign(hn::Set(d, 1.0f), a)); }
  HWY_INLINE V limit(V a) const { return hn::Min(hn::Max(a, hn::Set(d, -1.0f)), hn::Set(d, 1.0f)); }
};

#undef HR_FORMULA
#define HR_FORMULA HWY_INLINE
#include "ops/update/formulas-inl.h"

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif
