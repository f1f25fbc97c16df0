// Device code of the product with a constant.
#include "ops/scale/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

template <typename T>
__global__ void scale(float factor, const T* x, T* y, int64_t count) {
  for_runs<kPack<T>>(count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    Floats<N> values = load_floats<N>(x + i);
    HR_UNROLL for (int j = 0; j < N; ++j) values.at[j] *= factor;
    store_floats(y + i, values);
  });
}

#ifdef __CUDACC_RTC__
template __global__ void scale<float>(float, const float*, float*, int64_t);
template __global__ void scale<Bf16>(float, const Bf16*, Bf16*, int64_t);
#else
void launch_scale(FloatType type, float factor, const void* x, void* y, int64_t count, int multiprocessors,
                  CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch(scale<T>, grid_over(count / kPack<T> + 1, multiprocessors), stream, factor, static_cast<const T*>(x),
           static_cast<T*>(y), count);
  });
}
#endif

}  // namespace headroom::cuda
