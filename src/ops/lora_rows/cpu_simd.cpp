#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/lora_rows/cpu_simd.cpp"
#include <algorithm>

#include "hwy/foreach_target.h"
#include "ops/lora_rows/simd.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <typename X, typename A>
float product(const X* x, const A* a, int64_t count) {
  return sum_lanes(count, [&](auto d, int64_t i) HWY_ATTR { return hn::Mul(load(d, x + i), load(d, a + i)); });
}

template <typename B>
void add_rows(const float* t, int64_t rank, const B* b, int64_t stride, float* sums, int64_t count) {
  for (int64_t k = 0; k < rank; ++k, b += stride)
    for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
      store(d, hn::MulAdd(hn::Set(d, t[k]), load(d, b + i), load(d, sums + i)), sums + i);
    });
}

template <typename Y>
void add_sums(const Y* y, const float* sums, Y* to, int64_t count) {
  for_lanes(0, count,
            [&](auto d, int64_t i) HWY_ATTR { store(d, hn::Add(load(d, y + i), load(d, sums + i)), to + i); });
}

float down(const void* x, DType x_dtype, const void* a, DType a_dtype, int64_t count) {
  float sum = 0;
  with_floats(x_dtype, a_dtype, [&](auto x_type, auto a_type) {
    sum = product(static_cast<const decltype(x_type)*>(x), static_cast<const decltype(a_type)*>(a), count);
  });
  return sum;
}

void up(const float* t, int64_t rank, const void* b, DType b_dtype, int64_t stride, const void* y, void* to,
        DType dtype, int64_t count) {
  float sums[kLoraOuts];
  std::fill_n(sums, count, 0.0F);
  with_float(b_dtype,
             [&](auto type) { add_rows(t, rank, static_cast<const decltype(type)*>(b), stride, sums, count); });
  with_float(dtype, [&](auto type) {
    add_sums(static_cast<const decltype(type)*>(y), sums, static_cast<decltype(type)*>(to), count);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(down);
HWY_EXPORT(up);

float lora_down(const void* x, DType x_dtype, const void* a, DType a_dtype, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(down)(x, x_dtype, a, a_dtype, count);
}

void lora_up(const float* t, int64_t rank, const void* b, DType b_dtype, int64_t stride, const void* y, void* to,
             DType dtype, int64_t count) {
  HWY_DYNAMIC_DISPATCH(up)(t, rank, b, b_dtype, stride, y, to, dtype, count);
}

}  // namespace headroom
#endif
