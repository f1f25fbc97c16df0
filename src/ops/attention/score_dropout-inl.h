// Per-target draws of attention's dropout for vectors of queries. Included once per target, after simd_tile-inl.h.
#if defined(HEADROOM_ATTENTION_SCORE_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_ATTENTION_SCORE_DROPOUT_INL_H_
#undef HEADROOM_ATTENTION_SCORE_DROPOUT_INL_H_
#else
#define HEADROOM_ATTENTION_SCORE_DROPOUT_INL_H_
#endif

#include "ops/attention/score_dropout.h"
#include "ops/stream/random_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

// Applies dropout to vectors of queries, key by key: apply(), then again() for another value with the same draw.
class DroppedColumns {
  using Bits = hn::Vec<hn::RebindToUnsigned<VectorTag>>;

 public:
  // `low` and `high` are the halves of the queries' row keys.
  HWY_INLINE DroppedColumns(const uint32_t* low, const uint32_t* high, uint32_t below)
      : low_(hn::LoadU(kBits, low)),
        high_(hn::LoadU(kBits, high)),
        below_(hn::Set(kWhole, static_cast<int32_t>(below))),
        bits_(low_) {}

  // `value` or 0. Call with consecutive keys; the first is even.
  HWY_INLINE Vector apply(Vector value, int64_t key) {
    if (key % 2 == 0) {
      const auto first = mix32_lanes(kBits, hn::Add(low_, hn::Set(kBits, static_cast<uint32_t>(key / 2))));
      bits_ = mix32_lanes(kBits, hn::Xor(first, high_));
    } else {
      bits_ = hn::ShiftRight<16>(bits_);
    }
    const auto own = hn::BitCast(kWhole, hn::And(bits_, hn::Set(kBits, 0xffffu)));
    dropped_ = hn::RebindMask(VectorTag(), hn::Lt(own, below_));
    return again(value);
  }
  // The same for another value of the same key.
  HWY_INLINE Vector again(Vector value) const { return hn::IfThenZeroElse(dropped_, value); }

 private:
  static constexpr hn::RebindToUnsigned<VectorTag> kBits{};
  static constexpr hn::RebindToSigned<VectorTag> kWhole{};
  Bits low_, high_;
  hn::Vec<hn::RebindToSigned<VectorTag>> below_;
  Bits bits_;
  hn::Mask<VectorTag> dropped_{};
};

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
