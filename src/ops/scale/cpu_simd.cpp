#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scale/cpu_simd.cpp"
#include "hwy/foreach_target.h"
#include "ops/scale/simd.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
void run(const void* from, void* to, float factor, int64_t begin, int64_t end) {
  const T* const x = static_cast<const T*>(from);
  T* const y = static_cast<T*>(to);
  for_lanes(begin, end,
            [&](auto d, int64_t i) HWY_ATTR { store(d, hn::Mul(load(d, x + i), hn::Set(d, factor)), y + i); });
}

void range(const void* x, void* y, DType dtype, float factor, int64_t begin, int64_t end) {
  dtype == DType::bf16 ? run<bfloat16>(x, y, factor, begin, end) : run<float>(x, y, factor, begin, end);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(range);

void scale_range(const void* x, void* y, DType dtype, float factor, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(range)(x, y, dtype, factor, begin, end);
}

}  // namespace headroom
#endif
