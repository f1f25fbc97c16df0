// Device code of a paged cache: the decoding kernels (ops/attention/cuda_decode.cuh) for rows of any sequences, and the
// append.
#include "ops/paged_attention/cuda_kernels.h"

#include "ops/attention/cuda_decode.cuh"
#include "ops/cuda/elements.cuh"

namespace headroom::cuda {

// Keys are chunked by a sequence's positions, so that a row's sums have one order whatever other rows there are.
struct PagedCache {
  AttentionSizes sizes;
  PagedTables tables;

  // A row with a negative offset, or with an owner without a table, sees no keys.
  HR_DEVICE KeySpan seen(int row) const {
    const int owner = tables.owners[row];
    if (owner < 0 || owner >= tables.sequences || tables.offset[row] < 0) return {0, 0};
    const int position = smaller(tables.offset[row], tables.blocks_each * tables.block_tokens - 1);
    return {sizes.window > 0 ? larger(0, position - sizes.window + 1) : 0, position + 1};
  }
  // Clamped to the pool.
  HR_DEVICE int64_t row(int row, int key) const {
    const int in_table = key / tables.block_tokens;
    const int block = tables.tables[static_cast<int64_t>(tables.owners[row]) * tables.blocks_each + in_table];
    return static_cast<int64_t>(smaller(larger(block, 0), tables.blocks - 1)) * tables.block_tokens + key -
           in_table * tables.block_tokens;
  }
};

// N elements of a row per thread and iteration.
template <typename K, typename C, int N>
__global__ void kv_append_paged(const K* k, C* pool, const int32_t* slots, int64_t count, int64_t held, int64_t width) {
  for (int64_t i = first_index() * N; i < count; i += index_stride() * N) {
    const int64_t row = quotient(i, width), to = slots[row];
    if (to < 0 || to >= held) continue;
    append_elements<N>(k + i, pool + to * width + i - row * width);
  }
}

#ifdef __CUDACC_RTC__
#define HR_PAGED(Q, KV)                                                                                         \
  template __global__ void attention_decode<Q, KV, 1, PagedCache>(PagedCache, AttentionArrays, DecodeArrays);   \
  template __global__ void attention_decode<Q, KV, 4, PagedCache>(PagedCache, AttentionArrays, DecodeArrays);   \
  template __global__ void attention_decode<Q, KV, 8, PagedCache>(PagedCache, AttentionArrays, DecodeArrays);   \
  template __global__ void kv_append_paged<Q, KV, 1>(const Q*, KV*, const int32_t*, int64_t, int64_t, int64_t); \
  template __global__ void kv_append_paged<Q, KV, 4>(const Q*, KV*, const int32_t*, int64_t, int64_t, int64_t);
HR_PAGED(float, float)
HR_PAGED(float, Bf16)
HR_PAGED(float, Half)
HR_PAGED(Bf16, float)
HR_PAGED(Half, float)
HR_PAGED(Bf16, Bf16)
HR_PAGED(Half, Half)
template __global__ void attention_join<float, PagedCache>(PagedCache, AttentionArrays, DecodeArrays);
template __global__ void attention_join<Bf16, PagedCache>(PagedCache, AttentionArrays, DecodeArrays);
template __global__ void attention_join<Half, PagedCache>(PagedCache, AttentionArrays, DecodeArrays);
#else
void launch_attention_paged(FloatType q_type, FloatType kv_type, const AttentionSizes& sizes, const PagedTables& tables,
                            int64_t rows, int64_t at_once, const AttentionArrays& arrays, const DecodeArrays& partial,
                            CudaStream stream) {
  with_float_types(q_type, kv_type, [&](auto q_zero, auto kv_zero) {
    using Q = decltype(q_zero);
    for (int64_t first = 0; first < rows; first += at_once) {
      PagedCache cache{sizes, tables};
      cache.sizes.batch = static_cast<int32_t>(rows - first < at_once ? rows - first : at_once);
      cache.tables.owners += first;
      cache.tables.offset += first;
      AttentionArrays own = arrays;
      const int64_t skipped = first * sizes.heads * sizes.dim;
      own.q = static_cast<const Q*>(arrays.q) + skipped;
      own.o = static_cast<Q*>(arrays.o) + skipped;
      launch_decode<Q, decltype(kv_zero)>(cache, own, partial, stream);
    }
  });
}

void launch_kv_append_paged(FloatType k_type, FloatType pool_type, const void* k, void* pool, const int32_t* slots,
                            int64_t rows, int64_t held, int64_t width, int multiprocessors, CudaStream stream) {
  with_float_types(k_type, pool_type, [&](auto k_zero, auto pool_zero) {
    using K = decltype(k_zero);
    using C = decltype(pool_zero);
    const auto run = [&](auto kernel, int64_t items) {
      launch(kernel, grid_over(items, multiprocessors), stream, static_cast<const K*>(k), static_cast<C*>(pool), slots,
             rows * width, held, width);
    };
    if (width % 4 == 0)
      run(kv_append_paged<K, C, 4>, rows * width / 4);
    else
      run(kv_append_paged<K, C, 1>, rows * width);
  });
}
#endif

}  // namespace headroom::cuda
