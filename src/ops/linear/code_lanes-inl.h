// Codes of a weight as f32 lanes, in order: at(codes, i, scale) of each class gives the elements i, i + 1, ... of what
// begins at `codes`, times their scale; i is a multiple of the lanes. Included once per target.
#if defined(HEADROOM_OPS_LINEAR_CODE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_OPS_LINEAR_CODE_LANES_INL_H_
#undef HEADROOM_OPS_LINEAR_CODE_LANES_INL_H_
#else
#define HEADROOM_OPS_LINEAR_CODE_LANES_INL_H_
#endif

#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/block_codes.h"
#include "hwy/highway.h"
#include "ir/type.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using CodeTag = hn::CappedTag<float, 16>;
using CodeVector = hn::Vec<CodeTag>;

class ByteCodes {
 public:
  static constexpr size_t kBits = 8;
  explicit ByteCodes(CodeTable) {}
  HWY_INLINE CodeVector at(const uint8_t* codes, size_t i, CodeVector scale) const {
    const CodeTag d;
    const hn::Rebind<int8_t, CodeTag> bytes;
    const hn::RebindToSigned<CodeTag> whole;
    const auto code = hn::PromoteTo(whole, hn::LoadU(bytes, reinterpret_cast<const int8_t*>(codes) + i));
    return hn::Mul(hn::ConvertTo(d, code), scale);
  }
};

// Lane j: the bits from 4-bit code i + j on of the bytes that hold a vector of them.
HWY_INLINE auto shifted_nibbles(const uint8_t* codes, size_t i) {
  const hn::RebindToSigned<CodeTag> whole;
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(whole, codes[i / 2] >> (i % 2 == 0 ? 4 : 0));
#else
  const hn::RebindToUnsigned<CodeTag> bits;
  constexpr size_t kLanes = hn::MaxLanes(CodeTag());
  alignas(64) static constexpr uint32_t kShifts[16] = {4, 0, 12, 8, 20, 16, 28, 24, 4, 0, 12, 8, 20, 16, 28, 24};
  uint32_t words[2] = {};
  std::memcpy(words, codes + i / 2, kLanes / 2);
#if HWY_TARGET <= HWY_AVX3
  const hn::Half<decltype(bits)> half;
  const auto repeated = hn::Combine(bits, hn::Set(half, words[1]), hn::Set(half, words[0]));
#else
  const auto repeated = hn::Set(bits, words[0]);
#endif
  return hn::BitCast(whole, hn::Shr(repeated, hn::Load(bits, kShifts)));
#endif
}

// 4-bit whole numbers, stored plus 8.
class WholeNibbles {
 public:
  static constexpr size_t kBits = 4;
  explicit WholeNibbles(CodeTable) {}
  HWY_INLINE CodeVector at(const uint8_t* codes, size_t i, CodeVector scale) const {
    const CodeTag d;
    const auto code = hn::And(shifted_nibbles(codes, i), hn::Set(hn::RebindToSigned<CodeTag>(), 15));
    return hn::Mul(hn::Sub(hn::ConvertTo(d, code), hn::Set(d, 8.0f)), scale);
  }
};

// 4-bit codes whose values are looked up.
class TableNibbles {
 public:
  static constexpr size_t kBits = 4;
  explicit TableNibbles(CodeTable codes) : values_(code_values(codes).data()) {}
  HWY_INLINE CodeVector at(const uint8_t* codes, size_t i, CodeVector scale) const {
    return hn::Mul(look_up(CodeTag(), shifted_nibbles(codes, i)), scale);
  }

 private:
  template <class D, class Codes>
  HWY_INLINE hn::Vec<D> look_up(D d, Codes code) const {
    const hn::RebindToSigned<D> whole;
    constexpr size_t kLanes = hn::MaxLanes(D());
    if constexpr (kLanes >= 16) {
      return hn::TableLookupLanes(hn::LoadU(d, values_), hn::IndicesFromVec(d, hn::And(code, hn::Set(whole, 15))));
    } else if constexpr (kLanes == 8) {
      const auto within = hn::IndicesFromVec(d, hn::And(code, hn::Set(whole, 7)));
      const auto low = hn::TableLookupLanes(hn::LoadU(d, values_), within);
      const auto high = hn::TableLookupLanes(hn::LoadU(d, values_ + 8), within);
      return hn::IfNegativeThenElse(hn::BitCast(d, hn::ShiftLeft<28>(code)), high, low);
    } else {
      return hn::GatherIndex(d, values_, hn::And(code, hn::Set(whole, 15)));
    }
  }

  const float* values_;
};

// The scale of a block whose elements are rounded to T. Of a NaN only what a bfloat16 keeps, so that products with it
// are NaN after rounded_bits().
template <typename T>
HWY_INLINE CodeVector block_scale(float scale) {
  if (!std::is_same_v<T, float> && std::isnan(scale)) scale = static_cast<float>(bfloat16(scale));
  return hn::Set(CodeTag(), scale);
}

// Elements of a block with such a scale, rounded to T.
template <typename T>
HWY_INLINE CodeVector rounded_elements(CodeVector value) {
  const CodeTag d;
  if constexpr (std::is_same_v<T, bfloat16>) {
    const hn::RebindToUnsigned<CodeTag> bits;
    return hn::BitCast(d, hn::And(rounded_bits(d, value), hn::Set(bits, 0xffff0000u)));
  } else {
    return round_to<T>(d, value);
  }
}

// Calls body with a std::type_identity of the class of codes that are stored like this.
template <class Body>
void with_codes(const Storage& storage, const Body& body) {
  if (storage.payload_bits == 8) return body(std::type_identity<ByteCodes>());
  if (storage.codes == CodeTable::integer) return body(std::type_identity<WholeNibbles>());
  body(std::type_identity<TableNibbles>());
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
