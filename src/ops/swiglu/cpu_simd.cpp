#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/swiglu/cpu_simd.cpp"
#include "hwy/foreach_target.h"
#include "ops/gelu/functions-inl.h"
#include "ops/stream/lanes-inl.h"
#include "ops/swiglu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <typename T, class Function>
void forward(const SwigluArrays& arrays, int64_t begin, int64_t end) {
  const T* const gate = static_cast<const T*>(arrays.gate);
  const T* const up = static_cast<const T*>(arrays.up);
  T* const h = static_cast<T*>(arrays.h);
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    store(d, hn::Mul(Function::at(d, load(d, gate + i)).value, load(d, up + i)), h + i);
  });
}

template <typename T, class Function>
void backward(const SwigluArrays& arrays, int64_t begin, int64_t end) {
  const T* const gate = static_cast<const T*>(arrays.gate);
  const T* const up = static_cast<const T*>(arrays.up);
  const T* const dh = static_cast<const T*>(arrays.dh);
  T* const dgate = static_cast<T*>(arrays.dgate);
  T* const dup = static_cast<T*>(arrays.dup);
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto at = Function::at(d, load(d, gate + i));
    const auto gradient = load(d, dh + i);
    const auto to_gate = hn::Mul(hn::Mul(gradient, load(d, up + i)), at.slope);
    store(d, hn::Mul(gradient, at.value), dup + i);
    store(d, to_gate, dgate + i);
  });
}

template <class Function>
void both(const SwigluArrays& arrays, int64_t begin, int64_t end) {
  const bool narrow = arrays.dtype == DType::bf16;
  if (arrays.dh)
    narrow ? backward<bfloat16, Function>(arrays, begin, end) : backward<float, Function>(arrays, begin, end);
  else
    narrow ? forward<bfloat16, Function>(arrays, begin, end) : forward<float, Function>(arrays, begin, end);
}

void range(const SwigluArrays& arrays, int64_t begin, int64_t end) {
  if (arrays.activation == GateActivation::silu) return both<Silu>(arrays, begin, end);
  arrays.activation == GateActivation::gelu ? both<GeluExact>(arrays, begin, end)
                                            : both<GeluByTanh>(arrays, begin, end);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(range);

void swiglu_range(const SwigluArrays& arrays, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(range)(arrays, begin, end);
}

}  // namespace headroom
#endif
