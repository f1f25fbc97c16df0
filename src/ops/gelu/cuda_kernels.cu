// Device code of the GELU and its gradient.
#include "ops/gelu/cuda_kernels.h"

#include "ops/cuda/activations.cuh"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

template <typename T, typename F>
__global__ void gelu(const T* x, T* y, int64_t count) {
  for_runs<kPack<T>>(count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    Floats<N> values = load_floats<N>(x + i);
    HR_UNROLL for (int j = 0; j < N; ++j) values.at[j] = F::value(values.at[j]);
    store_floats(y + i, values);
  });
}

template <typename T, typename F>
__global__ void gelu_grad(const T* x, const T* dy, T* dx, int64_t count) {
  for_runs<kPack<T>>(count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    const Floats<N> values = load_floats<N>(x + i);
    Floats<N> gradient = load_floats<N>(dy + i);
    HR_UNROLL for (int j = 0; j < N; ++j) gradient.at[j] *= F::both(values.at[j]).slope;
    store_floats(dx + i, gradient);
  });
}

#ifdef __CUDACC_RTC__
#define HR_INSTANTIATE(T, F)                                  \
  template __global__ void gelu<T, F>(const T*, T*, int64_t); \
  template __global__ void gelu_grad<T, F>(const T*, const T*, T*, int64_t);
HR_INSTANTIATE(float, GeluExact)
HR_INSTANTIATE(float, GeluByTanh)
HR_INSTANTIATE(Bf16, GeluExact)
HR_INSTANTIATE(Bf16, GeluByTanh)
#else
void launch_gelu(FloatType type, bool by_tanh, const void* x, void* y, int64_t count, int multiprocessors,
                 CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch(by_tanh ? gelu<T, GeluByTanh> : gelu<T, GeluExact>, grid_over(count / kPack<T> + 1, multiprocessors), stream,
           static_cast<const T*>(x), static_cast<T*>(y), count);
  });
}

void launch_gelu_grad(FloatType type, bool by_tanh, const void* x, const void* dy, void* dx, int64_t count,
                      int multiprocessors, CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch(by_tanh ? gelu_grad<T, GeluByTanh> : gelu_grad<T, GeluExact>,
           grid_over(count / kPack<T> + 1, multiprocessors), stream, static_cast<const T*>(x),
           static_cast<const T*>(dy), static_cast<T*>(dx), count);
  });
}
#endif

}  // namespace headroom::cuda
