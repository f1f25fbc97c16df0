// Per-target random lanes: counter_bits() of ops/stream/counter_bits.h for a vector of elements, and what is drawn from
// them. Included once per target, after lanes-inl.h.
#if defined(HEADROOM_OPS_STREAM_RANDOM_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_OPS_STREAM_RANDOM_LANES_INL_H_
#undef HEADROOM_OPS_STREAM_RANDOM_LANES_INL_H_
#else
#define HEADROOM_OPS_STREAM_RANDOM_LANES_INL_H_
#endif

#include <cstdint>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class DU>
HWY_INLINE hn::Vec<DU> mix32_lanes(DU d, hn::Vec<DU> x) {
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d, 0x85ebca6bu));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<13>(x)), hn::Set(d, 0xc2b2ae35u));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

// counter_bits(key, index), counter_bits(key, index + 1), ... for the lanes of D; the indices share a block.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint32_t, D>> random_lanes(D, uint64_t key, uint64_t index) {
  const hn::Rebind<uint32_t, D> d;
  const auto low = hn::Set(d, static_cast<uint32_t>(index) + static_cast<uint32_t>(key));
  const auto first = mix32_lanes(d, hn::Add(hn::Iota(d, 0u), low));
  return mix32_lanes(d, hn::Xor(first, hn::Set(d, static_cast<uint32_t>(key >> 32))));
}

// Stochastic rounding by the top 16 of `bits`: the magnitude is rounded up with a probability that is its distance to
// the lower neighbour, in steps. NaN stays NaN.
template <class D>
HWY_INLINE void store_stochastic(D d, hn::Vec<D> value, hn::Vec<hn::Rebind<uint32_t, D>> bits, bfloat16* to) {
  const hn::Rebind<uint16_t, D> narrow;
  const hn::Rebind<uint32_t, D> wide;
  const auto raw = hn::BitCast(wide, value);
  const auto rounded = hn::Add(raw, hn::ShiftRight<16>(bits));
  const auto quiet = hn::Or(raw, hn::Set(wide, 0x400000u));
  const auto nan = hn::RebindMask(wide, hn::IsNaN(value));
  const auto top = hn::ShiftRight<16>(hn::IfThenElse(nan, quiet, rounded));
  hn::StoreU(hn::TruncateTo(narrow, top), narrow, reinterpret_cast<uint16_t*>(to));
}

// The same by the top 13 of `bits`: the bits of rounded_by<float16> (updated_weight.h). Subnormal numbers are multiples
// of 2^-24.
template <class D>
HWY_INLINE void store_stochastic(D d, hn::Vec<D> value, hn::Vec<hn::Rebind<uint32_t, D>> bits, float16* to) {
  const hn::Rebind<uint32_t, D> wide;
  const hn::Rebind<int32_t, D> whole;
  const auto draw = hn::ShiftRight<19>(bits);
  const auto size = hn::Abs(value);
  const auto cut = hn::AndNot(hn::Set(wide, 0x1fffu), hn::Add(hn::BitCast(wide, size), draw));
  const auto share = hn::Mul(hn::ConvertTo(d, hn::BitCast(whole, draw)), hn::Set(d, 0x1p-13f));
  const auto steps = hn::ConvertTo(whole, hn::MulAdd(size, hn::Set(d, 0x1p24f), share));
  const auto subnormal = hn::Mul(hn::ConvertTo(d, steps), hn::Set(d, 0x1p-24f));
  const auto rounded = hn::IfThenElse(hn::Lt(size, hn::Set(d, 0x1p-14f)), subnormal, hn::BitCast(d, cut));
  store(d, hn::IfThenElse(hn::IsNaN(value), value, hn::CopySign(rounded, value)), to);
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif
