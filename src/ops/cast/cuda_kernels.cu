// Device code of the conversions between f32 and bf16.
#include "ops/cast/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

constexpr int kCastRun = 8;  // 16 bytes of bf16

template <typename X, typename Y>
__global__ void cast(const X* x, Y* y, int64_t count) {
  for_runs<kCastRun>(count,
                     [&](auto run, int64_t i) { store_floats(y + i, load_floats<decltype(run)::value>(x + i)); });
}

#ifdef __CUDACC_RTC__
template __global__ void cast<float, float>(const float*, float*, int64_t);
template __global__ void cast<float, Bf16>(const float*, Bf16*, int64_t);
template __global__ void cast<Bf16, float>(const Bf16*, float*, int64_t);
template __global__ void cast<Bf16, Bf16>(const Bf16*, Bf16*, int64_t);
#else
void launch_cast(FloatType x_type, FloatType y_type, const void* x, void* y, int64_t count, int multiprocessors,
                 CudaStream stream) {
  with_float_types(x_type, y_type, [&](auto x_zero, auto y_zero) {
    using X = decltype(x_zero);
    using Y = decltype(y_zero);
    launch(cast<X, Y>, grid_over(count / kCastRun + 1, multiprocessors), stream, static_cast<const X*>(x),
           static_cast<Y*>(y), count);
  });
}
#endif

}  // namespace headroom::cuda
