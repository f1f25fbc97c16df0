#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/update/cpu_blocks_simd.cpp"
#include <algorithm>

#include "hwy/foreach_target.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/random_lanes-inl.h"
#include "ops/stream/updated_weight-inl.h"
#include "ops/update/arithmetic-inl.h"
#include "ops/update/blocks.h"
#include "ops/update/simd.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

// A constant for each level from 1 on, padded to the lanes of the longest vector.
struct LevelTable {
  float of[HWY_MAX_BYTES / sizeof(float) < 16 ? 16 : HWY_MAX_BYTES / sizeof(float)] = {};

  explicit LevelTable(const std::array<float, DynamicMap::kLevels>& levels) {
    for (size_t level = 1; level < DynamicMap::kLevels; ++level) of[level - 1] = levels[level];
  }
  // The constants of levels i + 1, by lane.
  template <class D, class VI>
  HWY_INLINE hn::Vec<D> at(D d, VI i) const {
    if constexpr (hn::MaxLanes(D()) >= DynamicMap::kLevels - 1)
      return hn::TableLookupLanes(hn::LoadU(d, of), hn::IndicesFromVec(d, i));
    else
      return hn::GatherIndex(d, of, i);
  }
};

// In each level, rank + shift starts at a power of two, so its exponent gives the level.
template <bool kSigned>
void decode(const DynamicMap& map, const uint8_t* codes, float absmax, int64_t count, float* to) {
  constexpr int kExponent = 127 + (kSigned ? 0 : 1);  // of level 1
  const LevelTable firsts(map.first), widths(map.width);
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
    const hn::Rebind<uint8_t, decltype(d)> narrow;
    const hn::Rebind<int32_t, decltype(d)> wide;
    const auto code = hn::ConvertTo(d, hn::PromoteTo(wide, hn::LoadU(narrow, codes + i)));
    const auto place = kSigned ? hn::Sub(code, hn::Set(d, 127.0f)) : hn::Add(code, hn::Set(d, 1.0f));
    const auto steps = hn::Abs(place);  // rank + shift: the level's power of two, plus 1 for each value after its first
    const auto exponent = hn::ShiftRight<23>(hn::BitCast(wide, steps));
    const auto level = hn::Max(hn::Sub(exponent, hn::Set(wide, kExponent)), hn::Zero(wide));
    const auto before = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
    const auto above = hn::MulAdd(hn::Sub(steps, before), widths.at(d, level), firsts.at(d, level));
    const auto magnitude = hn::IfThenZeroElse(hn::Lt(steps, hn::Set(d, kSigned ? 1.0f : 2.0f)), above);
    const auto value = kSigned ? hn::CopySign(magnitude, place) : magnitude;
    store(d, hn::Mul(value, hn::Set(d, absmax)), to + i);
  });
}

float largest(const float* x, int64_t count) {
  float most = 0;
  const hn::ScalableTag<float> d;
  auto all = hn::Zero(d);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) all = hn::Max(all, hn::Abs(load(d, x + i)));
  most = hn::GetLane(hn::MaxOfLanes(d, all));
  for (; i < count; ++i) most = std::max(most, x[i] < 0 ? -x[i] : x[i]);
  return most;
}

template <bool kSigned>
void encode(const DynamicMap& map, const float* x, float inverse, int64_t count, uint8_t* codes) {
  constexpr int kExponent = 127 + (kSigned ? 0 : 1);  // of level 1's steps
  const LevelTable enter(map.enter), all_per(map.per);
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
    const hn::Rebind<uint8_t, decltype(d)> narrow;
    const hn::Rebind<int32_t, decltype(d)> wide;
    const auto zero = hn::Zero(wide), one = hn::Set(wide, 1);
    const auto scaled = hn::Mul(load(d, x + i), hn::Set(d, inverse));
    const auto magnitude = hn::Abs(scaled);
    // Levels start at 1 to 2.75 times a power of ten (the last at 0.997). 2^e is in level 7.56 + e log10(2), rounded
    // down; other values of its octave are in that level or the next.
    const auto octave = hn::ConvertTo(d, hn::ShiftRight<23>(hn::BitCast(wide, magnitude)));
    const auto about = hn::MulAdd(octave, hn::Set(d, 0.30103f), hn::Set(d, 7.561f - 127 * 0.30103f));
    const auto least = hn::ConvertTo(wide, hn::Max(about, hn::Zero(d)));
    const auto beyond = hn::RebindMask(wide, hn::Gt(magnitude, enter.at(d, least)));
    const auto level = hn::Add(least, hn::IfThenElseZero(beyond, one));
    const auto index = hn::Max(hn::Sub(level, one), zero);
    const auto steps = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(index, hn::Set(wide, kExponent))));
    // A decade starts at a tenth of its end, so its start is a ninth of its length (here `steps`) above zero.
    const auto place = hn::NegMulAdd(steps, hn::Set(d, 1.0f / 9), hn::Mul(magnitude, all_per.at(d, index)));
    const auto within = hn::Max(hn::Min(hn::Floor(place), hn::Sub(steps, hn::Set(d, 1.0f))), hn::Zero(d));
    const auto rank = hn::ConvertTo(wide, hn::Sub(hn::Add(steps, within), hn::Set(d, kSigned ? 0.0f : 1.0f)));
    auto code = hn::IfThenElseZero(hn::Gt(level, zero), rank);
    if constexpr (kSigned) {
      const auto middle = hn::Set(wide, 127);
      const auto below = hn::Sub(middle, hn::Min(code, middle));
      code = hn::IfThenElse(hn::RebindMask(wide, hn::Lt(scaled, hn::Zero(d))), below, hn::Add(code, middle));
    }
    hn::StoreU(hn::DemoteTo(narrow, code), narrow, codes + i);
  });
}

// Updates elements [begin, end) of one block.
template <class F, class K>
void update_block(const UpdateArrays& arrays, const UpdateScalars& scalars, uint64_t key, int64_t begin, int64_t end) {
  const UpdateArrays a = arrays;
  const UpdateScalars s = scalars;
  HWY_ALIGN float values[F::kStates + 1][kStateBlock];
  const int64_t block = begin / kStateBlock, count = end - begin;
  for (int k = 0; k < F::kStates; ++k) {
    const bool is_signed = (F::kSigned >> k & 1) != 0;
    const auto run = is_signed ? decode<true> : decode<false>;
    run(dynamic_map(is_signed), a.codes[k] + begin, a.absmax[k][block], count, values[k]);
  }
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
    using V = hn::Vec<decltype(d)>;
    const V g = hn::Mul(load(d, a.g + begin + i), hn::Set(d, s.clip));
    V states[F::kStates + 1];
    for (int k = 0; k < F::kStates; ++k) states[k] = load(d, values[k] + i);
    const V before = load_weight(K(), d, a.weight, begin + i);
    const V w = F::at(UpdateLanes<decltype(d)>{d}, s.factors, before, g, states);
    for (int k = 0; k < F::kStates; ++k) store(d, states[k], values[k] + i);
    store_weight(K(), d, w, a.weight, begin + i, key);
  });
  for (int k = 0; k < F::kStates; ++k) {
    const bool is_signed = (F::kSigned >> k & 1) != 0;
    const float absmax = a.absmax[k][block] = largest(values[k], count);
    const auto run = is_signed ? encode<true> : encode<false>;
    run(dynamic_map(is_signed), values[k], inverse_of(absmax), count, a.codes[k] + begin);
  }
}

template <class F>
void weights(const UpdateArrays& arrays, const UpdateScalars& scalars, int64_t begin, int64_t end) {
  for (int64_t at = begin; at < end; at += kStateBlock)
    for_weight(arrays.weight, scalars.key, at, std::min(end, at + kStateBlock),
               [&](auto kept, uint64_t key, int64_t from, int64_t to) {
                 update_block<F, decltype(kept)>(arrays, scalars, key, from, to);
               });
}

void range(UpdateFormula formula, const UpdateArrays& arrays, const UpdateScalars& scalars, int64_t begin,
           int64_t end) {
  switch (formula) {
#define HR_RUN(number, type, ...) \
  case UpdateFormula::number:     \
    return weights<type>(arrays, scalars, begin, end);
    HR_UPDATES(HR_RUN)
#undef HR_RUN
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(range);

void update_blocks(UpdateFormula formula, const UpdateArrays& arrays, const UpdateScalars& scalars, int64_t begin,
                   int64_t end) {
  HWY_DYNAMIC_DISPATCH(range)(formula, arrays, scalars, begin, end);
}

}  // namespace headroom
#endif
