#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/softcap/cpu_simd.cpp"
#include "hwy/foreach_target.h"
#include "ops/softcap/simd.h"
#include "ops/softcap/tanh-inl.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
void run(const SoftcapArrays& arrays, int64_t begin, int64_t end) {
  const T* const x = static_cast<const T*>(arrays.x);
  const T* const dy = static_cast<const T*>(arrays.dy);
  T* const result = static_cast<T*>(arrays.result);
  const float cap = arrays.cap, inverse = 1.0f / cap;
  if (!dy)
    return for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
      const auto t = tanh_of(d, hn::Mul(load(d, x + i), hn::Set(d, inverse)));
      store(d, hn::Mul(t, hn::Set(d, cap)), result + i);
    });
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto t = hn::Mul(load(d, x + i), hn::Set(d, inverse));
    store(d, hn::Mul(load(d, dy + i), hn::NegMulAdd(t, t, hn::Set(d, 1.0f))), result + i);
  });
}

void range(const SoftcapArrays& arrays, int64_t begin, int64_t end) {
  arrays.dtype == DType::bf16 ? run<bfloat16>(arrays, begin, end) : run<float>(arrays, begin, end);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(range);

void softcap_range(const SoftcapArrays& arrays, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(range)(arrays, begin, end);
}

}  // namespace headroom
#endif
