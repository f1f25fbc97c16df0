#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/swiglu/cpu_simd.cpp"
#include "hwy/foreach_target.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/sigmoid-inl.h"
#include "ops/swiglu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
void forward(const SwigluArrays& arrays, int64_t begin, int64_t end) {
  const T* const gate = static_cast<const T*>(arrays.gate);
  const T* const up = static_cast<const T*>(arrays.up);
  T* const h = static_cast<T*>(arrays.h);
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto x = load(d, gate + i);
    store(d, hn::Mul(hn::Mul(x, sigmoid(d, x)), load(d, up + i)), h + i);
  });
}

// silu'(x) = s (1 + x (1 - s)) with s = sigmoid(x)
template <typename T>
void backward(const SwigluArrays& arrays, int64_t begin, int64_t end) {
  const T* const gate = static_cast<const T*>(arrays.gate);
  const T* const up = static_cast<const T*>(arrays.up);
  const T* const dh = static_cast<const T*>(arrays.dh);
  T* const dgate = static_cast<T*>(arrays.dgate);
  T* const dup = static_cast<T*>(arrays.dup);
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto one = hn::Set(d, 1.0f);
    const auto x = load(d, gate + i);
    const auto s = sigmoid(d, x);
    const auto slope = hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one));
    const auto gradient = load(d, dh + i);
    const auto to_gate = hn::Mul(hn::Mul(gradient, load(d, up + i)), slope);
    store(d, hn::Mul(gradient, hn::Mul(x, s)), dup + i);
    store(d, to_gate, dgate + i);
  });
}

void range(const SwigluArrays& arrays, int64_t begin, int64_t end) {
  arrays.dtype == DType::bf16 ? forward<bfloat16>(arrays, begin, end) : forward<float>(arrays, begin, end);
}

void grad_range(const SwigluArrays& arrays, int64_t begin, int64_t end) {
  arrays.dtype == DType::bf16 ? backward<bfloat16>(arrays, begin, end) : backward<float>(arrays, begin, end);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(range);
HWY_EXPORT(grad_range);

void swiglu_range(const SwigluArrays& arrays, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(range)(arrays, begin, end);
}

void swiglu_grad_range(const SwigluArrays& arrays, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(grad_range)(arrays, begin, end);
}

}  // namespace headroom
#endif
