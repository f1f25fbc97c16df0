// Device code of the embedding.
#include "ops/embedding/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

constexpr int kGatherRun = 8;

// A thread copies 8 elements of a row, and neighbouring threads neighbouring elements.
template <typename T, typename Y, bool kWhole>
__global__ void embedding(EmbeddingArgs a) {
  const int64_t runs = (a.width + kGatherRun - 1) / kGatherRun;
  for (int64_t item = first_index(); item < a.tokens * runs; item += index_stride()) {
    const int64_t token = quotient(item, runs), i = (item - token * runs) * kGatherRun;
    const T* const row = static_cast<const T*>(a.table) + clamp_index(a.ids[token], a.rows) * a.width;
    store_row<kWhole>(static_cast<Y*>(a.y) + token * a.width, i, a.width,
                      widen(load_row<kWhole, kGatherRun>(row, i, a.width)));
  }
}

#ifdef __CUDACC_RTC__
#define HR_INSTANTIATE(T, Y)                                     \
  template __global__ void embedding<T, Y, true>(EmbeddingArgs); \
  template __global__ void embedding<T, Y, false>(EmbeddingArgs);
HR_INSTANTIATE(float, float)
HR_INSTANTIATE(float, Bf16)
HR_INSTANTIATE(float, Half)
HR_INSTANTIATE(Bf16, float)
HR_INSTANTIATE(Half, float)
HR_INSTANTIATE(Bf16, Bf16)
HR_INSTANTIATE(Half, Half)
#else
void launch_embedding(FloatType table, FloatType y, const EmbeddingArgs& args, int multiprocessors, CudaStream stream) {
  with_float_types(table, y, [&](auto table_zero, auto y_zero) {
    using T = decltype(table_zero);
    using Y = decltype(y_zero);
    const int64_t runs = (args.width + kGatherRun - 1) / kGatherRun;
    launch(args.width % kGatherRun == 0 ? embedding<T, Y, true> : embedding<T, Y, false>,
           grid_over(args.tokens * runs, multiprocessors), stream, args);
  });
}
#endif

}  // namespace headroom::cuda
