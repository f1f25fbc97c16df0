#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/adamw/cpu_simd.cpp"
#include <algorithm>

#include "hwy/foreach_target.h"
#include "ops/adamw/simd.h"
#include "ops/stream/counter_bits.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/random_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

enum class Kept { wide, with_shadow, narrow };

template <Kept kKept, class D>
HWY_INLINE hn::Vec<D> old_weight(D d, const AdamWArrays& a, int64_t i) {
  if constexpr (kKept == Kept::narrow) return load(d, a.narrow + i);
  return load(d, a.w + i);
}

template <Kept kKept>
void update(const AdamWArrays& arrays, const AdamWStep& step, int64_t begin, int64_t end) {
  const AdamWArrays a = arrays;
  const AdamWStep s = step;
  const uint64_t key = block_key(s.key, static_cast<uint64_t>(begin));
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = hn::Mul(load(d, a.g + i), hn::Set(d, s.clip));
    const auto m = hn::MulAdd(load(d, a.m + i), hn::Set(d, s.beta1), hn::Mul(g, hn::Set(d, s.one_minus_beta1)));
    const auto squared = hn::Mul(hn::Mul(g, g), hn::Set(d, s.one_minus_beta2));
    const auto v = hn::MulAdd(load(d, a.v + i), hn::Set(d, s.beta2), squared);
    const auto root = hn::Div(hn::Sqrt(v), hn::Set(d, s.sqrt_correction));
    const auto move = hn::Div(m, hn::Add(root, hn::Set(d, s.eps)));
    const auto kept = hn::Mul(old_weight<kKept>(d, a, i), hn::Set(d, s.keep));
    const auto w = hn::NegMulAdd(hn::Set(d, s.step_size), move, kept);
    store(d, m, a.m + i);
    store(d, v, a.v + i);
    if constexpr (kKept == Kept::narrow) {
      store_stochastic(d, w, random_lanes(d, key, static_cast<uint64_t>(i)), a.narrow + i);
    } else {
      store(d, w, a.w + i);
      if constexpr (kKept == Kept::with_shadow) store(d, w, a.shadow + i);
    }
  });
}

void range(const AdamWArrays& arrays, const AdamWStep& step, int64_t begin, int64_t end) {
  if (!arrays.narrow)
    return arrays.shadow ? update<Kept::with_shadow>(arrays, step, begin, end)
                         : update<Kept::wide>(arrays, step, begin, end);
  constexpr int64_t kBlock = int64_t{1} << 32;  // elements that share a key
  for (int64_t at = begin; at < end;) {
    const int64_t stop = std::min(end, (at / kBlock + 1) * kBlock);
    update<Kept::narrow>(arrays, step, at, stop);
    at = stop;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(range);

void adamw_range(const AdamWArrays& arrays, const AdamWStep& step, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(range)(arrays, step, begin, end);
}

}  // namespace headroom
#endif
