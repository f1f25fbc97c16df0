// Device code of the elementwise ops: 16 bytes of each operand per thread and iteration.
#include "ops/elementwise/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"

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

#define HR_FORMULA HR_DEVICE
#include "ops/elementwise/formulas-inl.h"
#undef HR_FORMULA

template <typename T, typename F>
__global__ void elementwise(float value, ElementwiseOperands operands) {
  const FormulaConstant<float> constant{value, 1.0f / value};
  const T* const a = static_cast<const T*>(operands.in[0]);
  const T* const b = static_cast<const T*>(operands.in[1]);
  const T* const c = static_cast<const T*>(operands.in[2]);
  T* const first = static_cast<T*>(operands.out[0]);
  T* const second = static_cast<T*>(operands.out[1]);
  for_runs<kPack<T>>(operands.count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    Floats<N> x0 = load_floats<N>(a + i), x1 = x0, x2 = x0, y0, y1;
    if constexpr (F::kInputs > 1) x1 = load_floats<N>(b + i);
    if constexpr (F::kInputs > 2) x2 = load_floats<N>(c + i);
    HR_UNROLL for (int j = 0; j < N; ++j) {
      const float in[] = {x0.at[j], x1.at[j], x2.at[j]};
      float out[2];
      F::at(Device(), constant, in, out);
      y0.at[j] = out[0];
      if constexpr (F::kOutputs > 1) y1.at[j] = out[1];
    }
    store_floats(first + i, y0);
    if constexpr (F::kOutputs > 1) store_floats(second + i, y1);
  });
}

#ifdef __CUDACC_RTC__
#define HR_INSTANTIATE(number, ...)                                                     \
  template __global__ void elementwise<float, __VA_ARGS__>(float, ElementwiseOperands); \
  template __global__ void elementwise<Bf16, __VA_ARGS__>(float, ElementwiseOperands);
HR_FORMULAS(HR_INSTANTIATE)
#else
void launch_elementwise(Formula formula, FloatType type, float constant, const ElementwiseOperands& operands,
                        int multiprocessors, CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    const Grid grid = grid_over(operands.count / kPack<T> + 1, multiprocessors);
    switch (formula) {
#define HR_LAUNCH(number, ...) \
  case Formula::number:        \
    return launch(elementwise<T, __VA_ARGS__>, grid, stream, constant, operands);
      HR_FORMULAS(HR_LAUNCH)
#undef HR_LAUNCH
    }
  });
}
#endif

}  // namespace headroom::cuda
