// Device code of dropout.
#include "ops/dropout/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/random.cuh"

namespace headroom::cuda {

// Elements per thread: 16 bytes of the narrower type.
template <typename X, typename Y>
constexpr int kDropoutRun = kPack<X> > kPack<Y> ? kPack<X> : kPack<Y>;

template <typename X, typename Y>
__global__ void dropout(DropoutArgs a) {
  BlockKeys keys(step_key(a.hyper, a.tensor));
  for_runs<kDropoutRun<X, Y>>(a.count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    Floats<N> x = load_floats<N>(static_cast<const X*>(a.x) + i);
    HR_UNROLL for (int j = 0; j < N; ++j) {
      const bool kept = keys.bits(static_cast<uint64_t>(a.first + i + j)) >> 1 >= a.below;
      x.at[j] = kept ? x.at[j] * a.scale : 0.0f;
    }
    store_floats(static_cast<Y*>(a.y) + i, x);
  });
}

#ifdef __CUDACC_RTC__
template __global__ void dropout<float, float>(DropoutArgs);
template __global__ void dropout<float, Bf16>(DropoutArgs);
template __global__ void dropout<Bf16, float>(DropoutArgs);
template __global__ void dropout<Bf16, Bf16>(DropoutArgs);
#else
void launch_dropout(FloatType x_type, FloatType y_type, const DropoutArgs& args, int multiprocessors,
                    CudaStream stream) {
  with_float_types(x_type, y_type, [&](auto x_zero, auto y_zero) {
    using X = decltype(x_zero);
    using Y = decltype(y_zero);
    launch(dropout<X, Y>, grid_over(args.count / kDropoutRun<X, Y> + 1, multiprocessors), stream, args);
  });
}
#endif

}  // namespace headroom::cuda
