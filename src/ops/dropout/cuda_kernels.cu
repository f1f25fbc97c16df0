// Device code of dropout.
#include "ops/dropout/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/random.cuh"

namespace headroom::cuda {

template <typename T>
__global__ void dropout(DropoutArgs a) {
  BlockKeys keys(step_key(a.hyper, a.tensor));
  for_runs<kPack<T>>(a.count, [&](auto run, int64_t i) {
    constexpr int N = decltype(run)::value;
    Floats<N> x = load_floats<N>(static_cast<const T*>(a.x) + i);
    HR_UNROLL for (int j = 0; j < N; ++j) {
      const bool kept = keys.bits(static_cast<uint64_t>(a.first + i + j)) >> 1 >= a.below;
      x.at[j] = kept ? x.at[j] * a.scale : 0.0f;
    }
    store_floats(static_cast<T*>(a.y) + i, x);
  });
}

#ifdef __CUDACC_RTC__
template __global__ void dropout<float>(DropoutArgs);
template __global__ void dropout<Bf16>(DropoutArgs);
#else
void launch_dropout(FloatType type, const DropoutArgs& args, int multiprocessors, CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch(dropout<T>, grid_over(args.count / kPack<T> + 1, multiprocessors), stream, args);
  });
}
#endif

}  // namespace headroom::cuda
