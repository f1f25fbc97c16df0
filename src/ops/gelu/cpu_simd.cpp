#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/gelu/cpu_simd.cpp"
#include "hwy/foreach_target.h"
#include "ops/gelu/simd.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/sigmoid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

template <class D>
struct ValueAndSlope {
  hn::Vec<D> value;
  hn::Vec<D> slope;
};

// x Phi(x); the slope is Phi(x) + x phi(x).
struct Exact {
  template <class D>
  static HWY_INLINE ValueAndSlope<D> at(D d, hn::Vec<D> x) {
    const Normal<D> n = normal(d, x);
    return {hn::Mul(x, n.integral), hn::MulAdd(x, n.density, n.integral)};
  }
};

// x (1 + tanh(u)) / 2 = x sigmoid(2u) with u = sqrt(2/pi) (x + 0.044715 x^3).
struct ByTanh {
  template <class D>
  static HWY_INLINE ValueAndSlope<D> at(D d, hn::Vec<D> x) {
    const auto one = hn::Set(d, 1.0f);
    const auto root = hn::Set(d, 1.5957691216057308f);  // 2 sqrt(2/pi)
    const auto square = hn::Mul(x, x);
    const auto u = hn::Mul(hn::Mul(root, x), hn::MulAdd(square, hn::Set(d, 0.044715f), one));
    const auto rise = hn::Mul(root, hn::MulAdd(square, hn::Set(d, 0.134145f), one));
    const auto s = sigmoid(d, u);
    // Beyond 10 the product is below 1e-30, and x * rise may overflow.
    const auto bend = hn::Mul(s, hn::Sub(one, s));
    const auto steep = hn::IfThenZeroElse(hn::Gt(hn::Abs(x), hn::Set(d, 10.0f)), hn::Mul(hn::Mul(x, rise), bend));
    return {hn::Mul(x, s), hn::Add(s, steep)};
  }
};

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
    arrays.tanh ? run<bfloat16, ByTanh>(arrays, begin, end) : run<bfloat16, Exact>(arrays, begin, end);
  else
    arrays.tanh ? run<float, ByTanh>(arrays, begin, end) : run<float, Exact>(arrays, begin, end);
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
