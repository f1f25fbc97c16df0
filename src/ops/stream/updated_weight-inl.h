// Per-target access to the weight of an update (updated_weight.h). Included once per target, after random_lanes-inl.h.
#if defined(HEADROOM_OPS_STREAM_UPDATED_WEIGHT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADROOM_OPS_STREAM_UPDATED_WEIGHT_INL_H_
#undef HEADROOM_OPS_STREAM_UPDATED_WEIGHT_INL_H_
#else
#define HEADROOM_OPS_STREAM_UPDATED_WEIGHT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/stream/updated_weight.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// How a weight is kept: wide, with a copy in T, or in T alone.
struct KeptWide {};
template <typename T>
struct KeptWithCopy {};
template <typename T>
struct KeptNarrow {};

template <class D>
HWY_INLINE hn::Vec<D> load_weight(KeptWide, D d, const UpdatedWeight& weight, int64_t i) {
  return load(d, weight.wide + i);
}
template <typename T, class D>
HWY_INLINE hn::Vec<D> load_weight(KeptWithCopy<T>, D d, const UpdatedWeight& weight, int64_t i) {
  return load(d, weight.wide + i);
}
template <typename T, class D>
HWY_INLINE hn::Vec<D> load_weight(KeptNarrow<T>, D d, const UpdatedWeight& weight, int64_t i) {
  return load(d, static_cast<const T*>(weight.narrow) + i);
}

// `key`: the block_key() of the elements.
template <class D>
HWY_INLINE void store_weight(KeptWide, D d, hn::Vec<D> value, const UpdatedWeight& weight, int64_t i, uint64_t) {
  store(d, value, weight.wide + i);
}
template <typename T, class D>
HWY_INLINE void store_weight(KeptWithCopy<T>, D d, hn::Vec<D> value, const UpdatedWeight& weight, int64_t i, uint64_t) {
  store(d, value, weight.wide + i);
  store(d, value, static_cast<T*>(weight.copy) + i);
}
template <typename T, class D>
HWY_INLINE void store_weight(KeptNarrow<T>, D d, hn::Vec<D> value, const UpdatedWeight& weight, int64_t i,
                             uint64_t key) {
  store_stochastic(d, value, random_lanes(d, key, static_cast<uint64_t>(weight.first + i)),
                   static_cast<T*>(weight.narrow) + i);
}

// Calls update(Kept..., key of the block, begin, end) for ranges whose elements share a key.
template <class Update>
HWY_INLINE void for_weight(const UpdatedWeight& weight, uint64_t key, int64_t begin, int64_t end,
                           const Update& update) {
  if (weight.wide) {
    if (!weight.copy) return update(KeptWide(), key, begin, end);
    if (weight.dtype == DType::f16) return update(KeptWithCopy<float16>(), key, begin, end);
    return update(KeptWithCopy<bfloat16>(), key, begin, end);
  }
  constexpr int64_t kBlock = int64_t{1} << 32;  // elements that share a key
  for (int64_t at = begin; at < end;) {
    const int64_t index = weight.first + at;
    const int64_t stop = std::min(end, at + kBlock - index % kBlock);
    const uint64_t of_block = block_key(key, static_cast<uint64_t>(index));
    if (weight.dtype == DType::f16)
      update(KeptNarrow<float16>(), of_block, at, stop);
    else
      update(KeptNarrow<bfloat16>(), of_block, at, stop);
    at = stop;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#endif
