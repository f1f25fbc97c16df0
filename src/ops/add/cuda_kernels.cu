// Device code of add.
#include "ops/add/cuda_kernels.h"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

// One pack per thread and iteration; single threads add the last count % N elements.
template <typename T>
__global__ void add(const T* a, const T* b, T* y, int64_t count) {
  constexpr int N = kPack<T>;
  const int64_t packs = count / N;
  for (int64_t i = first_index(); i < packs; i += index_stride()) {
    const Pack<T, N> left = reinterpret_cast<const Pack<T, N>*>(a)[i],
                     right = reinterpret_cast<const Pack<T, N>*>(b)[i];
    Pack<T, N> sum;
    for (int j = 0; j < N; ++j) sum.at[j] = narrow<T>(widen(left.at[j]) + widen(right.at[j]));
    reinterpret_cast<Pack<T, N>*>(y)[i] = sum;
  }
  for (int64_t i = packs * N + first_index(); i < count; i += index_stride())
    y[i] = narrow<T>(widen(a[i]) + widen(b[i]));
}

#ifdef __CUDACC_RTC__
template __global__ void add<float>(const float*, const float*, float*, int64_t);
template __global__ void add<Bf16>(const Bf16*, const Bf16*, Bf16*, int64_t);
template __global__ void add<Half>(const Half*, const Half*, Half*, int64_t);
#else
void launch_add(FloatType type, const void* a, const void* b, void* y, int64_t count, int multiprocessors,
                CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch(add<T>, grid_over(count / kPack<T> + 1, multiprocessors), stream, static_cast<const T*>(a),
           static_cast<const T*>(b), static_cast<T*>(y), count);
  });
}
#endif

}  // namespace headroom::cuda
