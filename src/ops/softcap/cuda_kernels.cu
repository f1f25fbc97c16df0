// Device code of the soft cap and its gradient.
#include "ops/softcap/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

template <typename T>
__global__ void softcap(float cap, const T* x, T* y, int64_t count) {
  const float inverse = 1.0f / cap;
  for_runs<kPack<T>>(count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    Floats<N> values = load_floats<N>(x + i);
    HR_UNROLL for (int j = 0; j < N; ++j) values.at[j] = cap * tanhf(values.at[j] * inverse);
    store_floats(y + i, values);
  });
}

template <typename T>
__global__ void softcap_grad(float cap, const T* y, const T* dy, T* dx, int64_t count) {
  const float inverse = 1.0f / cap;
  for_runs<kPack<T>>(count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    const Floats<N> values = load_floats<N>(y + i);
    Floats<N> gradient = load_floats<N>(dy + i);
    HR_UNROLL for (int j = 0; j < N; ++j) {
      const float part = values.at[j] * inverse;
      gradient.at[j] *= 1.0f - part * part;
    }
    store_floats(dx + i, gradient);
  });
}

#ifdef __CUDACC_RTC__
template __global__ void softcap<float>(float, const float*, float*, int64_t);
template __global__ void softcap<Bf16>(float, const Bf16*, Bf16*, int64_t);
template __global__ void softcap_grad<float>(float, const float*, const float*, float*, int64_t);
template __global__ void softcap_grad<Bf16>(float, const Bf16*, const Bf16*, Bf16*, int64_t);
#else
void launch_softcap(FloatType type, float cap, const void* x, void* y, int64_t count, int multiprocessors,
                    CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch(softcap<T>, grid_over(count / kPack<T> + 1, multiprocessors), stream, cap, static_cast<const T*>(x),
           static_cast<T*>(y), count);
  });
}

void launch_softcap_grad(FloatType type, float cap, const void* y, const void* dy, void* dx, int64_t count,
                         int multiprocessors, CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch(softcap_grad<T>, grid_over(count / kPack<T> + 1, multiprocessors), stream, cap, static_cast<const T*>(y),
           static_cast<const T*>(dy), static_cast<T*>(dx), count);
  });
}
#endif

}  // namespace headroom::cuda
