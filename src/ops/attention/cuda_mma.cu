// Device code of attention's forward pass on tensor cores: bf16, heads of 64, 96 or 128, sm_80 and later. A block has
// 128 queries, 32 per warp, so that each fragment of k and v is used in two products. The next keys are copied while
// this tile's values are multiplied, and vice versa (Dao, "FlashAttention-2", 2023, section 3).
#include "ops/attention/cuda_mma.h"

#include "ops/attention/cuda_dropout.cuh"
#include "ops/attention/cuda_mma_tile.cuh"
#include "ops/attention/cuda_visible.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

constexpr int kMmaTimes = 2;  // groups of sixteen rows per warp
constexpr int kMmaQueries = 16 * kMmaWarps * kMmaTimes;
constexpr int kMmaKeys = 64;
constexpr int kMmaColumns = kMmaKeys / 8;

template <int D>
struct MmaForwardShared {
  Bf16 q[kMmaQueries * kMmaStride<D>];
  Bf16 k[kMmaKeys * kMmaStride<D>];
  Bf16 v[kMmaKeys * kMmaStride<D>];
  int begin[kMmaQueries];
  int end[kMmaQueries];
};

// Over the four threads that share rows.
HR_DEVICE float quad_maximum(float value) {
  value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, 1));
  return fmaxf(value, __shfl_xor_sync(kAllLanes, value, 2));
}
HR_DEVICE float quad_sum(float value) {
  value += __shfl_xor_sync(kAllLanes, value, 1);
  return value + __shfl_xor_sync(kAllLanes, value, 2);
}

// The running softmax of this thread's two rows of sixteen; `sum` covers the thread's own columns.
struct MmaRunning {
  float maximum[2];
  float sum[2];
};

// Turns products into weights for the tile's rows starting at `row`; `factor` is the factor for earlier sums.
template <bool kCapped>
HR_DEVICE void mma_softmax(MmaRunning& running, float (&s)[kMmaColumns][4], float (&factor)[2],
                           const MmaScores<kCapped>& scores, const int* begin, const int* end, int row, int key,
                           bool whole) {
  HR_UNROLL
  for (int half = 0; half < 2; ++half) {
    if (kCapped) {
      HR_UNROLL
      for (int n = 0; n < kMmaColumns; ++n)
        for (int i = 2 * half; i < 2 * half + 2; ++i) s[n][i] = scores.of(s[n][i]);
    }
    if (!whole) {
      const int from = begin[row + 8 * half] - key - mma_column(), to = end[row + 8 * half] - key - mma_column();
      HR_UNROLL
      for (int n = 0; n < kMmaColumns; ++n)
        for (int i = 0; i < 2; ++i)
          if (8 * n + i < from || 8 * n + i >= to) s[n][2 * half + i] = minus_infinity();
    }
    float largest = running.maximum[half];
    HR_UNROLL
    for (int n = 0; n < kMmaColumns; ++n) largest = fmaxf(largest, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
    largest = quad_maximum(largest);
    const float base = largest == minus_infinity() ? 0.0f : largest * scores.factor();
    factor[half] = power_of_two(running.maximum[half] * scores.factor() - base);
    running.maximum[half] = largest;
    float own = 0;
    HR_UNROLL
    for (int n = 0; n < kMmaColumns; ++n)
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        s[n][i] = power_of_two(s[n][i] * scores.factor() - base);
        own += s[n][i];
      }
    running.sum[half] = running.sum[half] * factor[half] + own;
  }
}

template <int D>
HR_DEVICE void store_mma_forward(const AttentionSizes& sizes, const AttentionArrays& arrays, const TilePlace& place,
                                 int first, const float (&out)[D / 8][4], const MmaRunning& running, float base,
                                 float kept) {
  float factors[2];
  HR_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float sum = quad_sum(running.sum[half]);
    factors[half] = sum > 0 ? kept / sum : sum == 0 ? 0.0f : sum;
    const int at = first + mma_row() + 8 * half;
    if (arrays.lse && mma_column() == 0 && at < sizes.queries)
      arrays.lse[(static_cast<int64_t>(place.row) * sizes.heads + place.head) * sizes.queries + at] =
          (running.maximum[half] * base + log2f(sum)) * kLn2;
  }
  store_mma_rows<D>(arrays.o, place.row, sizes.queries, sizes.heads, place.head, first, out, factors[0], factors[1]);
}

// Zeroes this thread's dropped weights of sixteen queries starting at `query` and the keys of a tile.
template <bool kDropped>
HR_DEVICE void drop_mma_weights(float (&s)[kMmaColumns][4], const HeadDropout<kDropped>& dropout, int query, int key) {
  HR_UNROLL
  for (int half = 0; half < 2; ++half) {
    const uint64_t row_key = dropout.row_key(query + mma_row() + 8 * half);
    HR_UNROLL
    for (int n = 0; n < kMmaColumns; ++n)
      dropout.drop_pair(s[n][2 * half], s[n][2 * half + 1], row_key, key + 8 * n + mma_column());
  }
}

template <int D, bool kCapped, bool kDropped>
HR_DEVICE void mma_forward(const AttentionSizes& sizes, const AttentionArrays& arrays) {
  HR_DYNAMIC_SHARED(MmaForwardShared<D>, shared);
  const TilePlace place = tile_place((sizes.queries + kMmaQueries - 1) / kMmaQueries, sizes.heads, 1);
  const int query = place.tile * kMmaQueries, thread = static_cast<int>(threadIdx.x);
  const int kv_head = place.head / (sizes.heads / sizes.kv_heads), own = thread / kWarp * 16 * kMmaTimes;
  const VisibleKeys visible(sizes, place.row);
  const int position = first_position(sizes) + smaller(query + thread, sizes.queries - 1);
  shared->begin[thread] = visible.begin(position);
  shared->end[thread] = visible.end(position);
  begin_rows<D, kMmaQueries>(shared->q,
                             mma_rows<D>(arrays.q, place.row, sizes.queries, sizes.heads, place.head, query));
  __syncthreads();
  const int last = shared->end[kMmaQueries - 1];
  MmaRows k = mma_rows<D>(arrays.k, place.row, sizes.keys, sizes.kv_heads, kv_head);
  MmaRows v = mma_rows<D>(arrays.v, place.row, sizes.keys, sizes.kv_heads, kv_head);
  k.count = v.count = last;
  begin_rows<D, kMmaKeys>(shared->k, rows_from(k, first_key<kDropped>(shared->begin[0])));
  end_copy_group();

  const MmaScores<kCapped> scores(sizes);
  const HeadDropout<kDropped> dropout(sizes, place.row, place.head);
  MmaRunning running[kMmaTimes];
  for (MmaRunning& rows : running) rows = {{minus_infinity(), minus_infinity()}, {0, 0}};
  float out[kMmaTimes][D / 8][4] = {};
  for (int key = first_key<kDropped>(shared->begin[0]); key < last; key += kMmaKeys) {
    await_copies<0>();
    __syncthreads();  // k has arrived, v is no longer used
    begin_rows<D, kMmaKeys>(shared->v, rows_from(v, key));
    end_copy_group();
    float s[kMmaTimes][kMmaColumns][4];
    mma_rows_product<D>(s, shared->q + own * kMmaStride<D>, shared->k);
    await_copies<0>();
    __syncthreads();  // v has arrived, k is no longer used
    if (key + kMmaKeys < last) begin_rows<D, kMmaKeys>(shared->k, rows_from(k, key + kMmaKeys));
    end_copy_group();
    const bool whole = shared->begin[kMmaQueries - 1] <= key && shared->end[0] >= key + kMmaKeys;
    HR_UNROLL
    for (int m = 0; m < kMmaTimes; ++m) {
      float factor[2];
      mma_softmax(running[m], s[m], factor, scores, shared->begin, shared->end, own + 16 * m + mma_row(), key, whole);
      HR_UNROLL
      for (int d = 0; d < D / 8; ++d)
        for (int i = 0; i < 4; ++i) out[m][d][i] *= factor[i / 2];
      if (kDropped) drop_mma_weights(s[m], dropout, query + own + 16 * m, key);
    }
    mma_weighted_rows<D>(out, s, shared->v);
  }
  await_copies<0>();
  HR_UNROLL
  for (int m = 0; m < kMmaTimes; ++m)
    store_mma_forward<D>(sizes, arrays, place, query + own + 16 * m, out[m], running[m], scores.factor(),
                         kept_scale<kDropped>(sizes));
}

template <int D, bool kCapped, bool kDropped>
__global__ void __launch_bounds__(kMmaThreads, 2) attention_mma(AttentionSizes sizes, AttentionArrays arrays) {
#ifdef HR_HAS_MMA
  mma_forward<D, kCapped, kDropped>(sizes, arrays);
#else
  __trap();
#endif
}

#ifdef __CUDACC_RTC__
#define HR_MMA(D)                                                                           \
  template __global__ void attention_mma<D, false, false>(AttentionSizes, AttentionArrays); \
  template __global__ void attention_mma<D, true, false>(AttentionSizes, AttentionArrays);  \
  template __global__ void attention_mma<D, false, true>(AttentionSizes, AttentionArrays);
HR_MMA(64)
HR_MMA(96)
HR_MMA(128)
#else
int64_t attention_mma_shared(int64_t dim) {
  int64_t bytes = 0;
  with_mma_head(dim, [&](auto head) { bytes = sizeof(MmaForwardShared<decltype(head)::value>); });
  return bytes;
}

void launch_attention_mma(const AttentionSizes& sizes, const AttentionArrays& arrays, CudaStream stream) {
  Grid grid;
  grid.x = int64_t{(sizes.queries + kMmaQueries - 1) / kMmaQueries} * sizes.heads * sizes.batch;
  grid.block = kMmaThreads;
  grid.shared_bytes = attention_mma_shared(sizes.dim);
  with_mma_head(sizes.dim, [&](auto head) {
    constexpr int D = decltype(head)::value;
    const auto kernel = sizes.softcap > 0 ? attention_mma<D, true, false>
                        : sizes.dropout.below > 0 ? attention_mma<D, false, true>
                                                  : attention_mma<D, false, false>;
    launch(kernel, grid, stream, sizes, arrays);
  });
}
#endif

}  // namespace headroom::cuda
