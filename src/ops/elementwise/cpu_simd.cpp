#include "ops/stream/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/cpu_simd.cpp"
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "hwy/foreach_target.h"
#include "ops/elementwise/simd.h"
#include "ops/stream/counter_bits.h"
#include "ops/stream/float_types.h"
#include "ops/stream/lanes-inl.h"
#include "ops/stream/random_lanes-inl.h"
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

// The same for elements from number `index` of the step's global batch, which have the same upper 32 bits and so the
// same `key`.
template <class D>
struct DrawingLanes : Lanes<D> {
  using V = hn::Vec<D>;
  uint64_t key;
  uint64_t index;
  uint32_t below;

  HWY_INLINE V unless_dropped(V v) const {
    const hn::Rebind<int32_t, D> whole;
    const auto drawn = hn::BitCast(whole, hn::ShiftRight<1>(random_lanes(this->d, key, index)));
    const auto dropped = hn::Lt(drawn, hn::Set(whole, static_cast<int32_t>(below)));
    return hn::IfThenZeroElse(hn::RebindMask(this->d, dropped), v);
  }
};

#undef HR_FORMULA
#define HR_FORMULA HWY_INLINE
#include "ops/elementwise/formulas-inl.h"

template <class F, class D>
HWY_INLINE auto arithmetic(D d, const FormulaDraws& draws, int64_t i) {
  if constexpr (kDraws<F>)
    return DrawingLanes<D>{{d}, draws.key, static_cast<uint64_t>(draws.first + i), draws.below};
  else
    return Lanes<D>{d};
}

template <class F, typename X, typename Y>
void run(const FormulaConstant<float>& c, const ElementwiseArrays& arrays, int64_t begin, int64_t end) {
  const FormulaConstant<float> constant = c;
  const FormulaDraws draws = arrays.draws;
  const X* in[F::kInputs];
  Y* out[F::kOutputs];
  for (int k = 0; k < F::kInputs; ++k) in[k] = static_cast<const X*>(arrays.in[k]);
  for (int k = 0; k < F::kOutputs; ++k) out[k] = static_cast<Y*>(arrays.out[k]);
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    hn::Vec<decltype(d)> x[F::kInputs], y[F::kOutputs];
    for (int k = 0; k < F::kInputs; ++k) x[k] = load(d, in[k] + i);
    F::at(arithmetic<F>(d, draws, i), constant, x, y);
    for (int k = 0; k < F::kOutputs; ++k) store(d, y[k], out[k] + i);
  });
}

// For one dtype and elements of `width` bytes: a copy keeps its bits.
void copy_bytes(const ElementwiseArrays& arrays, int64_t width, int64_t begin, int64_t end) {
  std::memcpy(static_cast<std::byte*>(arrays.out[0]) + begin * width,
              static_cast<const std::byte*>(arrays.in[0]) + begin * width, static_cast<size_t>((end - begin) * width));
}

template <class F>
void typed(const FormulaConstant<float>& constant, const ElementwiseArrays& arrays, int64_t begin, int64_t end) {
  if constexpr (std::is_same_v<F, Copy>)
    if (arrays.dtype == arrays.result_dtype) return copy_bytes(arrays, dtype_bytes(arrays.dtype), begin, end);
  if constexpr (kConverts<F>)
    with_floats(arrays.dtype, arrays.result_dtype,
                [&](auto x, auto y) { run<F, decltype(x), decltype(y)>(constant, arrays, begin, end); });
  else
    with_float(arrays.dtype, [&](auto type) { run<F, decltype(type), decltype(type)>(constant, arrays, begin, end); });
}

// If F draws, in parts whose elements have the same upper 32 bits.
template <class F>
void in_parts(const FormulaConstant<float>& constant, ElementwiseArrays arrays, int64_t begin, int64_t end) {
  if constexpr (kDraws<F>) {
    constexpr int64_t kBlock = int64_t{1} << 32;
    const uint64_t key = arrays.draws.key;
    while (begin < end) {
      const int64_t index = arrays.draws.first + begin;
      const int64_t stop = std::min(end, begin + kBlock - index % kBlock);
      arrays.draws.key = block_key(key, static_cast<uint64_t>(index));
      typed<F>(constant, arrays, begin, stop);
      begin = stop;
    }
  } else {
    typed<F>(constant, arrays, begin, end);
  }
}

void range(Formula formula, const FormulaConstant<float>& constant, const ElementwiseArrays& arrays, int64_t begin,
           int64_t end) {
  switch (formula) {
#define HR_RUN(number, type) \
  case Formula::number:      \
    return in_parts<type>(constant, arrays, begin, end);
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
