#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/moe/cpu_simd.cpp"
#include "hwy/foreach_target.h"
#include "ops/moe/simd.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

// Adds the rows of a token in the order of its slots.
template <typename T, typename Y>
void combine(const CombineArrays& arrays, int64_t begin, int64_t end) {
  const T* const z = static_cast<const T*>(arrays.z);
  for (int64_t token = begin; token < end; ++token) {
    const int32_t* rows = arrays.rows + token * arrays.chosen;
    const float* weights = arrays.weights ? arrays.weights + token * arrays.chosen : nullptr;
    const Y* const residual = arrays.residual ? static_cast<const Y*>(arrays.residual) + token * arrays.width : nullptr;
    Y* const y = static_cast<Y*>(arrays.y) + token * arrays.width;
    for_lanes(0, arrays.width, [&](auto d, int64_t i) HWY_ATTR {
      auto sum = residual ? load(d, residual + i) : hn::Zero(d);
      for (int64_t slot = 0; slot < arrays.chosen; ++slot) {
        const auto part = load(d, z + rows[slot] * arrays.width + i);
        sum = weights ? hn::MulAdd(hn::Set(d, weights[slot]), part, sum) : hn::Add(sum, part);
      }
      store(d, sum, y + i);
    });
  }
}

template <typename T, typename Y>
void backward(const CombineArrays& arrays, int64_t begin, int64_t end) {
  const T* const z = static_cast<const T*>(arrays.z);
  T* const dz = static_cast<T*>(arrays.dz);
  for (int64_t token = begin; token < end; ++token) {
    const Y* const dy = static_cast<const Y*>(arrays.dy) + token * arrays.width;
    for (int64_t pair = token * arrays.chosen; pair < (token + 1) * arrays.chosen; ++pair) {
      const int64_t row = arrays.rows[pair] * arrays.width;
      const float weight = arrays.weights[pair];
      arrays.dweights[pair] = sum_lanes(
          arrays.width, [&](auto d, int64_t i) HWY_ATTR { return hn::Mul(load(d, z + row + i), load(d, dy + i)); });
      for_lanes(0, arrays.width, [&](auto d, int64_t i) HWY_ATTR {
        store(d, hn::Mul(hn::Set(d, weight), load(d, dy + i)), dz + row + i);
      });
    }
  }
}

void tokens(const CombineArrays& arrays, int64_t begin, int64_t end) {
  if (arrays.dy)
    return with_floats(arrays.dtype, arrays.dy_dtype,
                       [&](auto z, auto dy) { backward<decltype(z), decltype(dy)>(arrays, begin, end); });
  const DType y_dtype = arrays.dtype == DType::f32 ? DType::f32 : arrays.y_dtype;
  with_floats(arrays.dtype, y_dtype, [&](auto z, auto y) { combine<decltype(z), decltype(y)>(arrays, begin, end); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(tokens);

void combine_tokens(const CombineArrays& arrays, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(tokens)(arrays, begin, end);
}

}  // namespace headroom
#endif
