// Sums of products of 16-bit codes in pairs, per target. Included once per target.
#if defined(HEADROOM_OPS_CPU_PAIR_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_OPS_CPU_PAIR_SUMS_INL_H_
#undef HEADROOM_OPS_CPU_PAIR_SUMS_INL_H_
#else
#define HEADROOM_OPS_CPU_PAIR_SUMS_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The sum of the products of both 16-bit halves of a and b, in lanes of 32 bits.
template <class D>
HWY_INLINE hn::Vec<D> pair_sums(D d, hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_TARGET == HWY_SCALAR
  const auto low = [&](auto pair) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(pair)); };
  return hn::Add(hn::Mul(low(a), low(b)), hn::Mul(hn::ShiftRight<16>(a), hn::ShiftRight<16>(b)));
#else
  const hn::Repartition<int16_t, D> codes;
  auto odd = hn::Zero(d);
  const auto even = hn::ReorderWidenMulAccumulate(d, hn::BitCast(codes, a), hn::BitCast(codes, b), hn::Zero(d), odd);
  return hn::RearrangeToOddPlusEven(even, odd);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif
