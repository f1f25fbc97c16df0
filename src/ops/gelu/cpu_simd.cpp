#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gelu/cpu_simd.cpp"
#include "hwy/foreach_target.h"
#include "ops/gelu/functions-inl.h"
#include "ops/gelu/simd.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <typename T, class Function>
void run(const GeluArrays& arrays, int64_t begin, int64_t end) {
  const T* const x = static_cast<const T*>(arrays.x);
  const T* const dy = static_cast<const T*>(arrays.dy);
  T* const result = static_cast<T*>(arrays.result);
  if (dy)
    for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
      store(d, hn::Mul(load(d, dy + i), Function::at(d, load(d, x + i)).slope), result + i);
    });
  else
    for_lanes(begin, end,
              [&](auto d, int64_t i) HWY_ATTR { store(d, Function::at(d, load(d, x + i)).value, result + i); });
}

void range(const GeluArrays& arrays, int64_t begin, int64_t end) {
  if (arrays.dtype == DType::bf16)
    arrays.tanh ? run<bfloat16, GeluByTanh>(arrays, begin, end) : run<bfloat16, GeluExact>(arrays, begin, end);
  else
    arrays.tanh ? run<float, GeluByTanh>(arrays, begin, end) : run<float, GeluExact>(arrays, begin, end);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(range);

void gelu_range(const GeluArrays& arrays, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(range)(arrays, begin, end);
}

}  // namespace headroom
#endif
