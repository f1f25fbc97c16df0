// Device code of the gated unit and its gradient: elementwise, 16 bytes of each operand per thread and round.
#include "ops/swiglu/cuda_kernels.h"

#include "ops/cuda/activations.cuh"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

template <typename T, typename F>
__global__ void swiglu(const T* gate, const T* up, T* h, int64_t count) {
  for_runs<kPack<T>>(count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    const Floats<N> g = load_floats<N>(gate + i), u = load_floats<N>(up + i);
    Floats<N> y;
    HR_UNROLL for (int j = 0; j < N; ++j) y.at[j] = F::value(g.at[j]) * u.at[j];
    store_floats(h + i, y);
  });
}

template <typename T, typename F>
__global__ void swiglu_grad(const T* gate, const T* up, const T* dh, T* dgate, T* dup, int64_t count) {
  for_runs<kPack<T>>(count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    const Floats<N> g = load_floats<N>(gate + i), u = load_floats<N>(up + i), d = load_floats<N>(dh + i);
    Floats<N> to_gate, to_up;
    HR_UNROLL for (int j = 0; j < N; ++j) {
      const ValueAndSlope f = F::both(g.at[j]);
      to_gate.at[j] = d.at[j] * u.at[j] * f.slope;
      to_up.at[j] = d.at[j] * f.value;
    }
    store_floats(dgate + i, to_gate);
    store_floats(dup + i, to_up);
  });
}

#ifdef __CUDACC_RTC__
#define HR_INSTANTIATE(T, F)                                              \
  template __global__ void swiglu<T, F>(const T*, const T*, T*, int64_t); \
  template __global__ void swiglu_grad<T, F>(const T*, const T*, const T*, T*, T*, int64_t);
HR_INSTANTIATE(float, Silu)
HR_INSTANTIATE(float, GeluByTanh)
HR_INSTANTIATE(float, GeluExact)
HR_INSTANTIATE(Bf16, Silu)
HR_INSTANTIATE(Bf16, GeluByTanh)
HR_INSTANTIATE(Bf16, GeluExact)
#else
namespace {

template <typename Body>
void with_gate_function(GateFunction function, const Body& body) {
  if (function == GateFunction::silu)
    body(Silu());
  else if (function == GateFunction::gelu_tanh)
    body(GeluByTanh());
  else
    body(GeluExact());
}

}  // namespace

void launch_swiglu(FloatType type, GateFunction function, const void* gate, const void* up, void* h, int64_t count,
                   int multiprocessors, CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    with_gate_function(function, [&](auto f) {
      using T = decltype(zero);
      launch(swiglu<T, decltype(f)>, grid_over(count / kPack<T> + 1, multiprocessors), stream,
             static_cast<const T*>(gate), static_cast<const T*>(up), static_cast<T*>(h), count);
    });
  });
}

void launch_swiglu_grad(FloatType type, GateFunction function, const void* gate, const void* up, const void* dh,
                        void* dgate, void* dup, int64_t count, int multiprocessors, CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    with_gate_function(function, [&](auto f) {
      using T = decltype(zero);
      launch(swiglu_grad<T, decltype(f)>, grid_over(count / kPack<T> + 1, multiprocessors), stream,
             static_cast<const T*>(gate), static_cast<const T*>(up), static_cast<const T*>(dh), static_cast<T*>(dgate),
             static_cast<T*>(dup), count);
    });
  });
}
#endif

}  // namespace headroom::cuda
