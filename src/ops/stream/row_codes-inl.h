// Per-target access to the rows of a matrix in 8-bit codes (row_codes.h). Included once per target, after
// random_lanes-inl.h.
#if defined(HEADROOM_OPS_STREAM_ROW_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_OPS_STREAM_ROW_CODES_INL_H_
#undef HEADROOM_OPS_STREAM_ROW_CODES_INL_H_
#else
#define HEADROOM_OPS_STREAM_ROW_CODES_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/stream/row_codes.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE void decode_int8_row(const Int8Rows& from, int64_t row, float* values) {
  const int8_t* const codes = from.codes + row * from.columns;
  const float scale = from.scales[row];
  for_lanes(0, from.columns, [&](auto d, int64_t i) HWY_ATTR {
    const hn::Rebind<int8_t, decltype(d)> narrow;
    const hn::Rebind<int32_t, decltype(d)> wide;
    const auto code = hn::ConvertTo(d, hn::PromoteTo(wide, hn::LoadU(narrow, codes + i)));
    store(d, hn::Mul(code, hn::Set(d, scale)), values + i);
  });
}

// The largest magnitude; NaN if an element is not finite.
HWY_INLINE float magnitude_of_row(const float* values, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto most = hn::Zero(d), fault = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = load(d, values + i);
    most = hn::Max(most, hn::Abs(v)), fault = hn::Add(fault, hn::Sub(v, v));
  }
  float found = hn::GetLane(hn::MaxOfLanes(d, most)), bad = hn::GetLane(hn::SumOfLanes(d, fault));
  for (; i < count; ++i) found = std::max(found, std::fabs(values[i])), bad += values[i] - values[i];
  return found + bad;
}

// `key`: the step_key() of the weight.
HWY_INLINE void encode_int8_row(const float* values, const Int8Rows& to, int64_t row, uint64_t key) {
  const float scale = int8_scale(magnitude_of_row(values, to.columns)), inverse = scale > 0 ? 1 / scale : 0.0f;
  const uint64_t draws = int8_row_key(key, row);
  int8_t* const codes = to.codes + row * to.columns;
  for_lanes(0, to.columns, [&](auto d, int64_t i) HWY_ATTR {
    const hn::Rebind<int8_t, decltype(d)> narrow;
    const hn::Rebind<int32_t, decltype(d)> wide;
    const auto bits = hn::BitCast(wide, hn::ShiftRight<8>(random_lanes(d, draws, static_cast<uint64_t>(i))));
    const auto drawn = hn::Mul(hn::ConvertTo(d, bits), hn::Set(d, 0x1p-24f));
    const auto steps = hn::Floor(hn::MulAdd(load(d, values + i), hn::Set(d, inverse), drawn));
    const auto code = hn::Min(hn::Max(hn::Set(d, -kMostInt8), steps), hn::Set(d, kMostInt8));
    hn::StoreU(hn::DemoteTo(narrow, hn::ConvertTo(wide, code)), narrow, codes + i);
  });
  to.scales[row] = scale;
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif
