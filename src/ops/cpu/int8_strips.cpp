#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/int8_strips.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file once per target.
#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
#include "hwy/highway.h"
#include "ops/cast/convert.h"
#include "ops/cpu/int8_codes.h"
#include "ops/cpu/int8_matmul_scratch.h"
#include "ops/cpu/int8_strips.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::CappedTag<float, 16>;
using I32 = hn::RebindToSigned<F32>;
constexpr int64_t kVector = static_cast<int64_t>(hn::MaxLanes(F32()));
constexpr int64_t kPiece = 256;  // elements that are read at a time
constexpr int64_t kUnit = 16;    // reads are followed by zeros up to a multiple of this

// Reads elements as f32.
class FloatReader {
 public:
  explicit FloatReader(const Int8Operand& operand) : operand_(operand) {}

  // `count` elements, at most kPiece, from element `at`; valid until the next call.
  const float* read(int64_t at, int64_t count) {
    const std::byte* from = static_cast<const std::byte*>(operand_.from) + at * dtype_bytes(operand_.dtype);
    const bool plain = operand_.dtype == DType::f32 && operand_.rounds == DType::f32;
    if (plain && count % kUnit == 0) return reinterpret_cast<const float*>(from);
    if (operand_.dtype == DType::f32 && !plain) {
      convert_floats(from, DType::f32, narrow_, operand_.rounds, count);
      convert_floats(narrow_, operand_.rounds, wide_, DType::f32, count);
    } else {
      convert_floats(from, operand_.dtype, wide_, DType::f32, count);
    }
    std::fill(wide_ + count, wide_ + align_up(count, kUnit), 0.0f);
    return wide_;
  }

 private:
  const Int8Operand& operand_;
  alignas(64) float wide_[kPiece];
  alignas(64) uint16_t narrow_[kPiece];
};

HWY_INLINE hn::Vec<I32> magnitudes(const float* from) {
  const I32 d;
  return hn::And(hn::BitCast(d, hn::LoadU(F32(), from)), hn::Set(d, 0x7fffffff));
}

// As int8_code().
HWY_INLINE hn::Vec<I32> codes_of(const float* from, hn::Vec<F32> inverse) {
  const F32 d;
  return hn::NearestInt(hn::IfThenElseZero(hn::Gt(inverse, hn::Zero(d)), hn::Mul(hn::LoadU(d, from), inverse)));
}

// The scale of a lane whose steps are contiguous.
Int8Scale scale_of_lane(FloatReader& reader, int64_t at, int64_t depth) {
  const I32 d;
  auto largest = hn::Zero(d);
  for (int64_t begin = 0; begin < depth; begin += kPiece) {
    const int64_t count = std::min(kPiece, depth - begin);
    const float* from = reader.read(at + begin, count);
    for (int64_t i = 0; i < count; i += kVector) largest = hn::Max(largest, magnitudes(from + i));
  }
  return int8_scale(hn::GetLane(hn::MaxOfLanes(d, largest)));
}

// One strip; a row in memory is a lane. `lanes` of the strip exist.
template <int64_t width>
void pack_lanes(const Int8Operand& operand, int64_t lane, int64_t lanes, std::byte* to, float* scales) {
  FloatReader reader(operand);
  float inverses[width] = {};
  for (int64_t i = 0; i < width; ++i) {
    const Int8Scale scale = i < lanes ? scale_of_lane(reader, (lane + i) * operand.stride, operand.depth) : Int8Scale{};
    scales[i] = scale.scale, inverses[i] = scale.inverse;
  }
  alignas(64) int16_t codes[kPiece];
  for (int64_t begin = 0; begin < operand.depth; begin += kPiece, to += kPiece / 2 * width * 4) {
    const int64_t count = std::min(kPiece, operand.depth - begin), pairs = (count + 1) / 2;
    for (int64_t i = 0; i < width; ++i) {
      if (i == lanes) std::fill(codes, codes + kPiece, int16_t{0});
      if (i < lanes) {
        const float* from = reader.read((lane + i) * operand.stride + begin, count);
        for (int64_t at = 0; at < count; at += kVector)
          hn::Store(hn::DemoteTo(hn::Rebind<int16_t, I32>(), codes_of(from + at, hn::Set(F32(), inverses[i]))),
                    hn::Rebind<int16_t, I32>(), codes + at);
      }
      for (int64_t pair = 0; pair < pairs; ++pair) std::memcpy(to + (pair * width + i) * 4, codes + 2 * pair, 4);
    }
  }
}

// `strips` strips of at most kPiece lanes; a row in memory is a step. `lanes` of them exist.
template <int64_t width>
void pack_steps(const Int8Operand& operand, int64_t lane, int64_t lanes, int64_t strips, std::byte* to, float* scales) {
  const I32 d;
  const F32 floats;
  FloatReader even(operand), odd(operand);
  alignas(64) int32_t numbers[kPiece] = {};  // the largest magnitudes, then pairs of codes
  alignas(64) float inverses[kPiece] = {};
  for (int64_t step = 0; step < operand.depth; ++step) {
    const float* from = even.read(step * operand.stride + lane, lanes);
    for (int64_t i = 0; i < lanes; i += kVector)
      hn::Store(hn::Max(hn::Load(d, numbers + i), magnitudes(from + i)), d, numbers + i);
  }
  for (int64_t i = 0; i < strips * width; ++i) {
    const Int8Scale scale = int8_scale(numbers[i]);
    scales[i] = scale.scale, inverses[i] = scale.inverse, numbers[i] = 0;
  }
  const int64_t strip = (operand.depth + 1) / 2 * width * 4;
  for (int64_t step = 0; step < operand.depth; step += 2, to += width * 4) {
    const bool whole = step + 1 < operand.depth;
    const float* low = even.read(step * operand.stride + lane, lanes);
    const float* high = whole ? odd.read((step + 1) * operand.stride + lane, lanes) : low;
    for (int64_t i = 0; i < lanes; i += kVector) {
      const auto inverse = hn::Load(floats, inverses + i);
      const auto upper = codes_of(high + i, whole ? inverse : hn::Zero(floats));
      const auto lower = hn::And(codes_of(low + i, inverse), hn::Set(d, 0xffff));
      hn::Store(hn::Or(lower, hn::ShiftLeft<16>(upper)), d, numbers + i);
    }
    for (int64_t i = 0; i < strips; ++i) std::memcpy(to + i * strip, numbers + i * width, width * 4);
  }
}

template <int64_t width>
void pack_strips(const Int8Operand& operand, int64_t first, int64_t last, std::byte* to, float* scales) {
  const int64_t together = operand.depth_major ? kPiece / width : 1, strip = (operand.depth + 1) / 2 * width * 4;
  for (int64_t at = first; at < last; at += together) {
    const int64_t strips = std::min(together, last - at), lane = at * width;
    const int64_t lanes = std::min(strips * width, operand.lanes - lane);
    if (operand.depth_major)
      pack_steps<width>(operand, lane, lanes, strips, to, scales);
    else
      pack_lanes<width>(operand, lane, lanes, to, scales);
    to += strips * strip, scales += strips * width;
  }
}

void pack_any(const Int8Operand& operand, int64_t width, int64_t first, int64_t last, std::byte* to, float* scales) {
  if (width == kInt8Pairs.rows) return pack_strips<kInt8Pairs.rows>(operand, first, last, to, scales);
  HR_CHECK(width == kInt8Pairs.cols, "no strips of {} lanes", width);
  pack_strips<kInt8Pairs.cols>(operand, first, last, to, scales);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(pack_any);

void pack_int8_strips(const Int8Operand& operand, int64_t width, int64_t first, int64_t last, std::byte* to,
                      float* scales) {
  HWY_DYNAMIC_DISPATCH(pack_any)(operand, width, first, last, to, scales);
}

}  // namespace headroom
#endif
