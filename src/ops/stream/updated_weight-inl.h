// Per-target access to the weight of an update (updated_weight.h). Included once per target, after random_lanes-inl.h.
#if defined(HEADROOM_OPS_STREAM_UPDATED_WEIGHT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_OPS_STREAM_UPDATED_WEIGHT_INL_H_
#undef HEADROOM_OPS_STREAM_UPDATED_WEIGHT_INL_H_
#else
#define HEADROOM_OPS_STREAM_UPDATED_WEIGHT_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/stream/updated_weight.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

enum class Kept { wide, with_copy, narrow };

template <Kept kKept, class D>
HWY_INLINE hn::Vec<D> load_weight(D d, const UpdatedWeight& weight, int64_t i) {
  if constexpr (kKept == Kept::narrow) return load(d, weight.narrow + i);
  return load(d, weight.wide + i);
}

// `key`: the block_key() of the elements.
template <Kept kKept, class D>
HWY_INLINE void store_weight(D d, hn::Vec<D> value, const UpdatedWeight& weight, int64_t i, uint64_t key) {
  if constexpr (kKept == Kept::narrow) {
    store_stochastic(d, value, random_lanes(d, key, static_cast<uint64_t>(weight.first + i)), weight.narrow + i);
  } else {
    store(d, value, weight.wide + i);
    if constexpr (kKept == Kept::with_copy) store(d, value, weight.copy + i);
  }
}

// Calls update(std::integral_constant<Kept, kept>, key of the block, begin, end) for ranges whose elements share a key.
template <class Update>
HWY_INLINE void for_weight(const UpdatedWeight& weight, uint64_t key, int64_t begin, int64_t end,
                           const Update& update) {
  if (!weight.narrow) {
    if (weight.copy) return update(std::integral_constant<Kept, Kept::with_copy>(), key, begin, end);
    return update(std::integral_constant<Kept, Kept::wide>(), key, begin, end);
  }
  constexpr int64_t kBlock = int64_t{1} << 32;  // elements that share a key
  for (int64_t at = begin; at < end;) {
    const int64_t index = weight.first + at;
    const int64_t stop = std::min(end, at + kBlock - index % kBlock);
    update(std::integral_constant<Kept, Kept::narrow>(), block_key(key, static_cast<uint64_t>(index)), at, stop);
    at = stop;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif
