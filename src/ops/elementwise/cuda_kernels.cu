// Device code of the elementwise ops: 16 bytes of each operand per thread and iteration.
#include "ops/elementwise/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/random.cuh"

namespace headroom::cuda {

// f32; no branch depends on an element's value.
struct Device {
  struct Normal {
    float density, integral;
  };
  HR_DEVICE float set(double c) const { return static_cast<float>(c); }
  HR_DEVICE float add(float a, float b) const { return a + b; }
  HR_DEVICE float sub(float a, float b) const { return a - b; }
  HR_DEVICE float mul(float a, float b) const { return a * b; }
  HR_DEVICE float mul_add(float a, float b, float c) const { return c + a * b; }
  HR_DEVICE float neg_mul_add(float a, float b, float c) const { return c - a * b; }
  HR_DEVICE float quotient(float x, const FormulaConstant<float>& c) const { return x * c.inverse; }
  HR_DEVICE float one_plus_square(double a, float x) const { return 1.0f + static_cast<float>(a) * x * x; }
  HR_DEVICE float times_bend(float w, float s) const { return w * s * (1.0f - s); }
  HR_DEVICE float zero_beyond(double limit, float x, float v) const {
    return fabsf(x) > static_cast<float>(limit) ? 0.0f : v;
  }
  HR_DEVICE float sigmoid(float x) const { return 1.0f / (1.0f + expf(-x)); }
  HR_DEVICE Normal normal(float x) const {
    const float integral = 0.5f * erfcf(x * -0.70710678f);
    return {0.39894228f * expf(-0.5f * x * x), integral};
  }
  HR_DEVICE float tanh(float x) const { return tanhf(x); }
};

// For one element of which the random bits are known.
struct DrawingDevice : Device {
  bool dropped;
  HR_DEVICE float unless_dropped(float v) const { return dropped ? 0.0f : v; }
};

#define HR_FORMULA HR_DEVICE
#include "ops/elementwise/formulas-inl.h"
#undef HR_FORMULA

// The arithmetic of each element of a call.
template <bool kRandom>
struct Elements {
  HR_DEVICE explicit Elements(const ElementwiseOperands&) {}
  HR_DEVICE Device at(int64_t) const { return {}; }
};
template <>
struct Elements<true> {
  BlockKeys keys;
  uint32_t below;
  HR_DEVICE explicit Elements(const ElementwiseOperands& a)
      : keys(step_key(a.hyper, a.tensor), a.draws.first), below(a.draws.below) {}
  HR_DEVICE DrawingDevice at(int64_t i) { return {{}, keys.bits(static_cast<uint64_t>(i)) >> 1 < below}; }
};

// Elements per thread: 16 bytes of the narrower type.
template <typename X, typename Y>
constexpr int kElementwiseRun = kPack<X> > kPack<Y> ? kPack<X> : kPack<Y>;

template <typename X, typename Y, typename F>
__global__ void elementwise(float value, ElementwiseOperands operands) {
  const FormulaConstant<float> constant{value, 1.0f / value};
  const X* const a = static_cast<const X*>(operands.in[0]);
  const X* const b = static_cast<const X*>(operands.in[1]);
  const X* const c = static_cast<const X*>(operands.in[2]);
  Y* const first = static_cast<Y*>(operands.out[0]);
  Y* const second = static_cast<Y*>(operands.out[1]);
  Elements<kDraws<F>> elements(operands);
  for_runs<kElementwiseRun<X, Y>>(operands.count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    Floats<N> x0 = load_floats<N>(a + i), x1 = x0, x2 = x0, y0, y1;
    if constexpr (F::kInputs > 1) x1 = load_floats<N>(b + i);
    if constexpr (F::kInputs > 2) x2 = load_floats<N>(c + i);
    HR_UNROLL for (int j = 0; j < N; ++j) {
      const float in[] = {x0.at[j], x1.at[j], x2.at[j]};
      float out[2];
      F::at(elements.at(i + j), constant, in, out);
      y0.at[j] = out[0];
      if constexpr (F::kOutputs > 1) y1.at[j] = out[1];
    }
    store_floats(first + i, y0);
    if constexpr (F::kOutputs > 1) store_floats(second + i, y1);
  });
}

#ifdef __CUDACC_RTC__
#define HR_INSTANTIATE(number, ...)                                                            \
  template __global__ void elementwise<float, float, __VA_ARGS__>(float, ElementwiseOperands); \
  template __global__ void elementwise<Bf16, Bf16, __VA_ARGS__>(float, ElementwiseOperands);   \
  template __global__ void elementwise<Half, Half, __VA_ARGS__>(float, ElementwiseOperands);
HR_FORMULAS(HR_INSTANTIATE)
#define HR_INSTANTIATE_MIXED(number, ...)                                                     \
  template __global__ void elementwise<float, Bf16, __VA_ARGS__>(float, ElementwiseOperands); \
  template __global__ void elementwise<Bf16, float, __VA_ARGS__>(float, ElementwiseOperands); \
  template __global__ void elementwise<float, Half, __VA_ARGS__>(float, ElementwiseOperands); \
  template __global__ void elementwise<Half, float, __VA_ARGS__>(float, ElementwiseOperands);
HR_CONVERTING_FORMULAS(HR_INSTANTIATE_MIXED)
#else
// body(X{}, Y{}) with the element types of F's inputs and outputs.
template <typename F, typename Body>
void with_types_of(FloatType x_type, FloatType y_type, const Body& body) {
  if constexpr (kConverts<F>)
    with_float_types(x_type, y_type, body);
  else
    with_float_type(x_type, [&](auto zero) { body(zero, zero); });
}

template <typename F>
void launch_formula(FloatType x_type, FloatType y_type, float constant, const ElementwiseOperands& operands,
                    int multiprocessors, CudaStream stream) {
  with_types_of<F>(x_type, y_type, [&](auto x_zero, auto y_zero) {
    using X = decltype(x_zero);
    using Y = decltype(y_zero);
    launch(elementwise<X, Y, F>, grid_over(operands.count / kElementwiseRun<X, Y> + 1, multiprocessors), stream,
           constant, operands);
  });
}

void launch_elementwise(Formula formula, FloatType x_type, FloatType y_type, float constant,
                        const ElementwiseOperands& operands, int multiprocessors, CudaStream stream) {
  switch (formula) {
#define HR_LAUNCH(number, ...) \
  case Formula::number:        \
    return launch_formula<__VA_ARGS__>(x_type, y_type, constant, operands, multiprocessors, stream);
    HR_FORMULAS(HR_LAUNCH)
#undef HR_LAUNCH
  }
}
#endif

}  // namespace headroom::cuda
