#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/cpu_simd.cpp"
#include "hwy/foreach_target.h"
#include "ops/elementwise/simd.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/sigmoid-inl.h"
#include "ops/stream/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headroom {
namespace HWY_NAMESPACE {
namespace {

// Arithmetic in vectors of f32.
template <class D>
struct Lanes {
  using V = hn::Vec<D>;
  D d;

  HWY_INLINE V set(double c) const { return hn::Set(d, static_cast<float>(c)); }
  HWY_INLINE V add(V a, V b) const { return hn::Add(a, b); }
  HWY_INLINE V sub(V a, V b) const { return hn::Sub(a, b); }
  HWY_INLINE V mul(V a, V b) const { return hn::Mul(a, b); }
  HWY_INLINE V mul_add(V a, V b, V c) const { return hn::MulAdd(a, b, c); }
  HWY_INLINE V neg_mul_add(V a, V b, V c) const { return hn::NegMulAdd(a, b, c); }
  HWY_INLINE V quotient(V x, const FormulaConstant<float>& c) const { return hn::Mul(x, hn::Set(d, c.inverse)); }
  HWY_INLINE V one_plus_square(double a, V x) const { return hn::MulAdd(hn::Mul(x, x), set(a), set(1)); }
  HWY_INLINE V times_bend(V w, V s) const { return hn::Mul(w, hn::Mul(s, hn::Sub(set(1), s))); }
  HWY_INLINE V zero_beyond(double limit, V x, V v) const {
    return hn::IfThenZeroElse(hn::Gt(hn::Abs(x), set(limit)), v);
  }
  HWY_INLINE V sigmoid(V x) const { return HWY_NAMESPACE::sigmoid(d, x); }
  HWY_INLINE Normal<D> normal(V x) const { return HWY_NAMESPACE::normal(d, x); }
  HWY_INLINE V tanh(V x) const { return tanh_of(d, x); }
};

#undef HR_FORMULA
#define HR_FORMULA HWY_INLINE
#include "ops/elementwise/formulas-inl.h"

template <class F, typename T>
void run(const FormulaConstant<float>& c, const ElementwiseArrays& arrays, int64_t begin, int64_t end) {
  const FormulaConstant<float> constant = c;
  const T* in[F::kInputs];
  T* out[F::kOutputs];
  for (int k = 0; k < F::kInputs; ++k) in[k] = static_cast<const T*>(arrays.in[k]);
  for (int k = 0; k < F::kOutputs; ++k) out[k] = static_cast<T*>(arrays.out[k]);
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    hn::Vec<decltype(d)> x[F::kInputs], y[F::kOutputs];
    for (int k = 0; k < F::kInputs; ++k) x[k] = load(d, in[k] + i);
    F::at(Lanes<decltype(d)>{d}, constant, x, y);
    for (int k = 0; k < F::kOutputs; ++k) store(d, y[k], out[k] + i);
  });
}

template <class F>
void typed(const FormulaConstant<float>& constant, const ElementwiseArrays& arrays, int64_t begin, int64_t end) {
  with_float(arrays.dtype, [&](auto type) { run<F, decltype(type)>(constant, arrays, begin, end); });
}

void range(Formula formula, const FormulaConstant<float>& constant, const ElementwiseArrays& arrays, int64_t begin,
           int64_t end) {
  switch (formula) {
#define HR_RUN(number, type) \
  case Formula::number:      \
    return typed<type>(constant, arrays, begin, end);
    HR_FORMULAS(HR_RUN)
#undef HR_RUN
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace headroom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headroom {

HWY_EXPORT(range);

void elementwise_range(Formula formula, const FormulaConstant<float>& constant, const ElementwiseArrays& arrays,
                       int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(range)(formula, constant, arrays, begin, end);
}

}  // namespace headroom
#endif
