#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/adamw/cpu_simd.cpp"
#include "hwy/foreach_target.h"
#include "ops/adamw/simd.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/random_lanes-inl.h"
#include "ops/stream/updated_weight-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <Kept kKept>
void update(const AdamWArrays& arrays, const AdamWStep& step, uint64_t key, int64_t begin, int64_t end) {
  const AdamWArrays a = arrays;
  const AdamWStep s = step;
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = hn::Mul(load(d, a.g + i), hn::Set(d, s.clip));
    const auto m = hn::MulAdd(load(d, a.m + i), hn::Set(d, s.beta1), hn::Mul(g, hn::Set(d, s.one_minus_beta1)));
    const auto squared = hn::Mul(hn::Mul(g, g), hn::Set(d, s.one_minus_beta2));
    const auto v = hn::MulAdd(load(d, a.v + i), hn::Set(d, s.beta2), squared);
    const auto root = hn::Div(hn::Sqrt(v), hn::Set(d, s.sqrt_correction));
    const auto move = hn::Div(m, hn::Add(root, hn::Set(d, s.eps)));
    const auto kept = hn::Mul(load_weight<kKept>(d, a.weight, i), hn::Set(d, s.keep));
    const auto w = hn::NegMulAdd(hn::Set(d, s.step_size), move, kept);
    store(d, m, a.m + i);
    store(d, v, a.v + i);
    store_weight<kKept>(d, w, a.weight, i, key);
  });
}

void range(const AdamWArrays& arrays, const AdamWStep& step, int64_t begin, int64_t end) {
  for_weight(arrays.weight, step.key, begin, end, [&](auto kept, uint64_t key, int64_t from, int64_t to) {
    update<decltype(kept)::value>(arrays, step, key, from, to);
  });
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
