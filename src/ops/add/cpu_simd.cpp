#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/add/cpu_simd.cpp"
#include "hwy/foreach_target.h"
#include "ops/add/simd.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <typename A, typename B, typename Y>
void add(const void* a_data, const void* b_data, void* y_data, int64_t count) {
  const A* const a = static_cast<const A*>(a_data);
  const B* const b = static_cast<const B*>(b_data);
  Y* const y = static_cast<Y*>(y_data);
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR { store(d, hn::Add(load(d, a + i), load(d, b + i)), y + i); });
}

void add_same(const void* a, const void* b, void* y, DType dtype, int64_t count) {
  with_float(dtype, [&](auto type) { add<decltype(type), decltype(type), decltype(type)>(a, b, y, count); });
}

void add_to_f32(const void* x, DType dtype, float* acc, int64_t count) {
  with_float(dtype, [&](auto type) { add<float, decltype(type), float>(acc, x, acc, count); });
}

void add_from_f32(const void* x, const float* addend, void* y, DType dtype, int64_t count) {
  with_float(dtype, [&](auto type) { add<decltype(type), float, decltype(type)>(x, addend, y, count); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(add_same);
HWY_EXPORT(add_to_f32);
HWY_EXPORT(add_from_f32);

void add_floats(const void* a, const void* b, void* y, DType dtype, int64_t count) {
  HWY_DYNAMIC_DISPATCH(add_same)(a, b, y, dtype, count);
}

void accumulate_floats(const void* x, DType dtype, float* acc, int64_t count) {
  HWY_DYNAMIC_DISPATCH(add_to_f32)(x, dtype, acc, count);
}

void add_f32(const void* x, const float* addend, void* y, DType dtype, int64_t count) {
  HWY_DYNAMIC_DISPATCH(add_from_f32)(x, addend, y, dtype, count);
}

}  // namespace headroom
#endif
