#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sgd/cpu_simd.cpp"
#include "hwy/foreach_target.h"
#include "ops/sgd/simd.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/random_lanes-inl.h"
#include "ops/stream/updated_weight-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <Kept kKept>
void update(const SgdArrays& arrays, const SgdStep& step, uint64_t key, int64_t begin, int64_t end) {
  const SgdArrays a = arrays;
  const SgdStep s = step;
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto w = load_weight<kKept>(d, a.weight, i);
    const auto clipped = hn::Mul(load(d, a.g + i), hn::Set(d, s.clip));
    const auto g = hn::MulAdd(hn::Set(d, s.decay), w, clipped);
    auto move = g;
    if (a.buffer) {
      const auto momentum = hn::Set(d, s.momentum);
      const auto buffer = hn::MulAdd(load(d, a.buffer + i), momentum, g);
      store(d, buffer, a.buffer + i);
      move = s.nesterov ? hn::MulAdd(buffer, momentum, g) : buffer;
    }
    store_weight<kKept>(d, hn::NegMulAdd(hn::Set(d, s.lr), move, w), a.weight, i, key);
  });
}

void range(const SgdArrays& arrays, const SgdStep& step, int64_t begin, int64_t end) {
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

void sgd_range(const SgdArrays& arrays, const SgdStep& step, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(range)(arrays, step, begin, end);
}

}  // namespace headroom
#endif
