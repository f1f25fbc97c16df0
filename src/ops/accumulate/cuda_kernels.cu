// Device code of accumulation.
#include "ops/accumulate/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

template <typename T>
__global__ void accumulate(bool overwrite, const T* x, T* acc, int64_t count) {
  for_runs<kPack<T>>(count, [&](auto run, int64_t i) {
    using P = Pack<T, decltype(run)::value>;
    P sum = *reinterpret_cast<const P*>(x + i);
    if (!overwrite) {
      const P before = *reinterpret_cast<const P*>(acc + i);
      HR_UNROLL for (int j = 0; j < decltype(run)::value; ++j) sum.at[j] += before.at[j];
    }
    *reinterpret_cast<P*>(acc + i) = sum;
  });
}

#ifdef __CUDACC_RTC__
template __global__ void accumulate<float>(bool, const float*, float*, int64_t);
template __global__ void accumulate<double>(bool, const double*, double*, int64_t);
#else
namespace {

template <typename T>
void launch_typed(bool overwrite, const void* x, void* acc, int64_t count, int multiprocessors, CudaStream stream) {
  launch(accumulate<T>, grid_over(count / kPack<T> + 1, multiprocessors), stream, overwrite, static_cast<const T*>(x),
         static_cast<T*>(acc), count);
}

}  // namespace

void launch_accumulate(bool wide, bool overwrite, const void* x, void* acc, int64_t count, int multiprocessors,
                       CudaStream stream) {
  wide ? launch_typed<double>(overwrite, x, acc, count, multiprocessors, stream)
       : launch_typed<float>(overwrite, x, acc, count, multiprocessors, stream);
}
#endif

}  // namespace headroom::cuda
