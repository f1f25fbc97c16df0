// Decoding from a cache in which the rows of a sequence are consecutive, and the append to it.
#include "ops/attention/cuda_decode.cuh"

namespace headroom::cuda {

struct WholeCache {
  AttentionSizes sizes;

  HR_DEVICE KeySpan seen(int row) const {
    const VisibleKeys visible(sizes, row);
    const int position = first_position(sizes);
    return {visible.begin(position), visible.end(position)};
  }
  HR_DEVICE int64_t row(int row, int key) const { return static_cast<int64_t>(row) * sizes.keys + key; }
};

// N elements of a row per thread and iteration.
template <typename K, typename C, int N>
__global__ void kv_append(const K* k, C* cache, const int32_t* offset, int64_t count, int64_t rows, int64_t held,
                          int64_t width) {
  const int64_t first = *offset;
  for (int64_t i = first_index() * N; i < count; i += index_stride() * N) {
    const int64_t to = i / width % rows + first;
    if (to < 0 || to >= held) continue;
    append_elements<N>(k + i, cache + (i / width / rows * held + to) * width + i % width);
  }
}

#ifdef __CUDACC_RTC__
#define HR_DECODE(Q, KV)                                                                                           \
  template __global__ void attention_decode<Q, KV, 1, WholeCache>(WholeCache, AttentionArrays, DecodeArrays);      \
  template __global__ void attention_decode<Q, KV, 4, WholeCache>(WholeCache, AttentionArrays, DecodeArrays);      \
  template __global__ void attention_decode<Q, KV, 8, WholeCache>(WholeCache, AttentionArrays, DecodeArrays);      \
  template __global__ void kv_append<Q, KV, 1>(const Q*, KV*, const int32_t*, int64_t, int64_t, int64_t, int64_t); \
  template __global__ void kv_append<Q, KV, 4>(const Q*, KV*, const int32_t*, int64_t, int64_t, int64_t, int64_t);
HR_DECODE(float, float)
HR_DECODE(float, Bf16)
HR_DECODE(float, Half)
HR_DECODE(Bf16, float)
HR_DECODE(Half, float)
HR_DECODE(Bf16, Bf16)
HR_DECODE(Half, Half)
template __global__ void attention_join<float, WholeCache>(WholeCache, AttentionArrays, DecodeArrays);
template __global__ void attention_join<Bf16, WholeCache>(WholeCache, AttentionArrays, DecodeArrays);
template __global__ void attention_join<Half, WholeCache>(WholeCache, AttentionArrays, DecodeArrays);
#else
void launch_attention_decode(FloatType q_type, FloatType kv_type, const AttentionSizes& sizes,
                             const AttentionArrays& arrays, const DecodeArrays& partial, CudaStream stream) {
  with_float_types(q_type, kv_type, [&](auto q_zero, auto kv_zero) {
    launch_decode<decltype(q_zero), decltype(kv_zero)>(WholeCache{sizes}, arrays, partial, stream);
  });
}

void launch_kv_append(FloatType k_type, FloatType cache_type, const void* k, void* cache, const int32_t* offset,
                      int64_t batch, int64_t rows, int64_t held, int64_t width, int multiprocessors,
                      CudaStream stream) {
  const int64_t count = batch * rows * width;
  with_float_types(k_type, cache_type, [&](auto k_zero, auto cache_zero) {
    using K = decltype(k_zero);
    using C = decltype(cache_zero);
    const auto run = [&](auto kernel, int64_t items) {
      launch(kernel, grid_over(items, multiprocessors), stream, static_cast<const K*>(k), static_cast<C*>(cache),
             offset, count, rows, held, width);
    };
    if (width % 4 == 0)
      run(kv_append<K, C, 4>, count / 4);
    else
      run(kv_append<K, C, 1>, count);
  });
}
#endif

}  // namespace headroom::cuda
