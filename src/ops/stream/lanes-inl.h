// Per-target building blocks of the streaming kernels: f32 lanes over f32, bf16 or f16 storage. Included once per
// target.
#if defined(HEADROOM_OPS_STREAM_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_OPS_STREAM_LANES_INL_H_
#undef HEADROOM_OPS_STREAM_LANES_INL_H_
#else
#define HEADROOM_OPS_STREAM_LANES_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const bfloat16* from) {
  const hn::Rebind<uint16_t, D> narrow;
  const hn::Rebind<uint32_t, D> wide;
  const auto bits = hn::PromoteTo(wide, hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(from)));
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}

// Instruction sets with conversions of f16; on others, elements are converted one by one.
#undef HR_CONVERTS_F16
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define HR_CONVERTS_F16 1
#else
#define HR_CONVERTS_F16 0
#endif

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float16* from) {
#if HR_CONVERTS_F16
  const hn::Rebind<uint16_t, D> bits;
  const hn::Rebind<hwy::float16_t, D> narrow;
  return hn::PromoteTo(d, hn::BitCast(narrow, hn::LoadU(bits, reinterpret_cast<const uint16_t*>(from))));
#else
  HWY_ALIGN float wide[hn::MaxLanes(D())];
  for (size_t i = 0; i < hn::Lanes(d); ++i) wide[i] = static_cast<float>(from[i]);
  return hn::Load(d, wide);
#endif
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, float* to) {
  hn::StoreU(value, d, to);
}

// Bits whose upper half is that of bfloat16(float), rounded to nearest even. A NaN stays one if its lower half is 0.
template <class D>
HWY_INLINE auto rounded_bits(D, hn::Vec<D> value) {
  const hn::Rebind<uint32_t, D> wide;
  const auto bits = hn::BitCast(wide, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1u));
  return hn::Add(hn::Add(bits, hn::Set(wide, 0x7fffu)), odd);
}

// The same for any value.
template <class D>
HWY_INLINE auto bfloat16_bits(D d, hn::Vec<D> value) {
  const hn::Rebind<uint32_t, D> wide;
  const auto quiet = hn::Or(hn::BitCast(wide, value), hn::Set(wide, 0x400000u));
  return hn::IfThenElse(hn::RebindMask(wide, hn::IsNaN(value)), quiet, rounded_bits(d, value));
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, bfloat16* to) {
  const hn::Rebind<uint16_t, D> narrow;
  const auto top = hn::ShiftRight<16>(bfloat16_bits(d, value));
  hn::StoreU(hn::TruncateTo(narrow, top), narrow, reinterpret_cast<uint16_t*>(to));
}

// The same for f16: the bits of float16(float).
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, float16* to) {
#if HR_CONVERTS_F16
  const hn::Rebind<uint16_t, D> bits;
  const hn::Rebind<hwy::float16_t, D> narrow;
  hn::StoreU(hn::BitCast(bits, hn::DemoteTo(narrow, value)), bits, reinterpret_cast<uint16_t*>(to));
#else
  HWY_ALIGN float wide[hn::MaxLanes(D())];
  hn::Store(value, d, wide);
  for (size_t i = 0; i < hn::Lanes(d); ++i) to[i] = float16(wide[i]);
#endif
}

// The values that storing as T and loading again gives.
template <typename T, class D>
HWY_INLINE hn::Vec<D> round_to(D d, hn::Vec<D> value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    const hn::Rebind<uint32_t, D> wide;
    return hn::BitCast(d, hn::And(bfloat16_bits(d, value), hn::Set(wide, 0xffff0000u)));
  } else {
    T narrow[hn::MaxLanes(D())];
    store(d, value, narrow);
    return load(d, narrow);
  }
}

// Loads elements as those of type T: f32 ones are rounded to it.
template <typename T, class D>
HWY_INLINE hn::Vec<D> load_rounded(D d, const T* from) {
  return load(d, from);
}
template <typename T, class D>
requires(!std::is_same_v<T, float>) HWY_INLINE hn::Vec<D> load_rounded(D d, const float* from) {
  return round_to<T>(d, hn::LoadU(d, from));
}

// body(d, i) for the elements from begin to end: full vectors first, then one element at a time.
template <class Body>
HWY_INLINE void for_lanes(int64_t begin, int64_t end, const Body& body) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) body(d, i);
  const hn::CappedTag<float, 1> one;
  for (; i < end; ++i) body(one, i);
}

// The sum of term(d, i) for i in [0, count), in an order that depends only on count and the target.
template <class Term>
HWY_INLINE float sum_lanes(int64_t count, const Term& term) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    a = hn::Add(a, term(d, i));
    b = hn::Add(b, term(d, i + lanes));
    c = hn::Add(c, term(d, i + 2 * lanes));
    e = hn::Add(e, term(d, i + 3 * lanes));
  }
  for (; i + lanes <= count; i += lanes) a = hn::Add(a, term(d, i));
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  const hn::CappedTag<float, 1> one;
  for (; i < count; ++i) sum += hn::GetLane(term(one, i));
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif
