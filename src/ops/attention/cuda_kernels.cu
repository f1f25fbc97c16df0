// Device code of attention's forward pass for any head size: softmax over tiles of keys with a running maximum (Dao et
// al., "FlashAttention", 2022, algorithm 1).
#include "ops/attention/cuda_kernels.h"

#include "ops/attention/cuda_dropout.cuh"
#include "ops/attention/cuda_tile.cuh"
#include "ops/attention/cuda_visible.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

struct ForwardShared {
  float stage[kStageFloats];
  float weights[kTile * kTile];
  int begin[kTile];
  int end[kTile];
};

// Over the 16 threads that share tile rows.
HR_DEVICE float row_maximum(float value) {
  for (int distance = 8; distance > 0; distance /= 2) value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}
HR_DEVICE float row_sum(float value) {
  for (int distance = 8; distance > 0; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

// The running softmax of this thread's four rows; `sum` covers the thread's own columns.
struct RunningRows {
  float maximum[4];
  float sum[4];

  HR_DEVICE RunningRows() {
    for (int i = 0; i < 4; ++i) {
      maximum[i] = minus_infinity();
      sum[i] = 0;
    }
  }
  // Turns scores into weights; `factor` is the factor for earlier sums of row i.
  HR_DEVICE void step(int i, float (&row)[4], float& factor) {
    const float now = fmaxf(maximum[i], row_maximum(fmaxf(fmaxf(row[0], row[1]), fmaxf(row[2], row[3]))));
    const float base = now == minus_infinity() ? 0.0f : now;
    factor = power_of_two(maximum[i] - base);
    maximum[i] = now;
    float own = 0;
    HR_UNROLL
    for (int j = 0; j < 4; ++j) {
      row[j] = power_of_two(row[j] - base);
      own += row[j];
    }
    sum[i] = sum[i] * factor + own;
  }
};

// Each block computes 64 queries of a head: 64 C columns of o starting with `part`, and lse in the block of the first
// part.
template <typename Q, typename KV, int C, bool kDropped>
__global__ void __launch_bounds__(kTileThreads, 2) attention_tiles(AttentionSizes sizes, AttentionArrays arrays) {
  HR_DYNAMIC_SHARED(ForwardShared, shared);
  const int tiles = (sizes.queries + kTile - 1) / kTile, parts = (sizes.dim + 64 * C - 1) / (64 * C);
  const TilePlace place = tile_place(tiles, sizes.heads, parts);
  const int query = place.tile * kTile, column = place.part * 64 * C, thread = static_cast<int>(threadIdx.x);
  const int kv_head = place.head / (sizes.heads / sizes.kv_heads);
  const VisibleKeys visible(sizes, place.row);
  if (thread < kTile) {
    const int position = first_position(sizes) + smaller(query + thread, sizes.queries - 1);
    shared->begin[thread] = visible.begin(position);
    shared->end[thread] = visible.end(position);
  }
  __syncthreads();
  const int last = shared->end[kTile - 1];
  const HeadRows<Q> q =
      head_rows<Q>(arrays.q, place.row, sizes.queries, sizes.heads, place.head, sizes.dim).from(query);
  HeadRows<KV> k = head_rows<KV>(arrays.k, place.row, sizes.keys, sizes.kv_heads, kv_head, sizes.dim);
  HeadRows<KV> v = head_rows<KV>(arrays.v, place.row, sizes.keys, sizes.kv_heads, kv_head, sizes.dim);
  k.count = v.count = last;

  const Scores scores(sizes);
  const HeadDropout<kDropped> dropout(sizes, place.row, place.head);
  RunningRows running;
  float out[4][4 * C] = {};
  for (int key = first_key<kDropped>(shared->begin[0]); key < last; key += kTile) {
    float s[4][4];
    multiply_rows(s, q, k.from(key), shared->stage);
    const bool whole = shared->begin[kTile - 1] <= key && shared->end[0] >= key + kTile;
    HR_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int begin = shared->begin[tile_row() + i], end = shared->end[tile_row() + i];
      HR_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int at = key + tile_column() + j;
        s[i][j] = whole || (at >= begin && at < end) ? scores.of(s[i][j]) : minus_infinity();
      }
      float factor;
      running.step(i, s[i], factor);
      const uint64_t row_key = dropout.row_key(query + tile_row() + i);
      HR_UNROLL
      for (int j = 0; j < 4; j += 2) dropout.drop_pair(s[i][j], s[i][j + 1], row_key, key + tile_column() + j);
      HR_UNROLL
      for (int j = 0; j < 4 * C; ++j) out[i][j] *= factor;
    }
    store_weights(shared->weights, s);
    add_weighted_rows<C>(out, shared->weights, v.from(key), column, shared->stage);
  }

  float factors[4];
  HR_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float sum = row_sum(running.sum[i]);
    factors[i] = sum > 0 ? kept_scale<kDropped>(sizes) / sum : sum == 0 ? 0.0f : sum;
    const int at = query + tile_row() + i;
    if (arrays.lse && place.part == 0 && tile_column() == 0 && at < sizes.queries)
      arrays.lse[(static_cast<int64_t>(place.row) * sizes.heads + place.head) * sizes.queries + at] =
          (running.maximum[i] + log2f(sum)) * kLn2;
  }
  store_rows<C, Q>(arrays.o, place.row, sizes.queries, sizes.heads, place.head, sizes.dim, query, column, out, factors);
}

#ifdef __CUDACC_RTC__
#define HR_ATTENTION(Q, KV)                                                                   \
  template __global__ void attention_tiles<Q, KV, 1, false>(AttentionSizes, AttentionArrays); \
  template __global__ void attention_tiles<Q, KV, 2, false>(AttentionSizes, AttentionArrays);
#define HR_ATTENTION_DROPPED(T)                                                             \
  template __global__ void attention_tiles<T, T, 1, true>(AttentionSizes, AttentionArrays); \
  template __global__ void attention_tiles<T, T, 2, true>(AttentionSizes, AttentionArrays);
HR_ATTENTION(float, float)
HR_ATTENTION(float, Bf16)
HR_ATTENTION(float, Half)
HR_ATTENTION(Bf16, float)
HR_ATTENTION(Half, float)
HR_ATTENTION(Bf16, Bf16)
HR_ATTENTION(Half, Half)
HR_ATTENTION_DROPPED(float)
HR_ATTENTION_DROPPED(Bf16)
HR_ATTENTION_DROPPED(Half)
#else
template <int C>
static void launch_tiles(FloatType q_type, FloatType kv_type, const AttentionSizes& sizes,
                         const AttentionArrays& arrays, const Grid& grid, CudaStream stream) {
  if (sizes.dropout.below > 0)  // only training drops, and its operands have one type
    return with_float_type(q_type, [&](auto zero) {
      using T = decltype(zero);
      launch(attention_tiles<T, T, C, true>, grid, stream, sizes, arrays);
    });
  with_float_types(q_type, kv_type, [&](auto q_zero, auto kv_zero) {
    using Q = decltype(q_zero);
    using KV = decltype(kv_zero);
    launch(attention_tiles<Q, KV, C, false>, grid, stream, sizes, arrays);
  });
}

void launch_attention(FloatType q_type, FloatType kv_type, const AttentionSizes& sizes, const AttentionArrays& arrays,
                      CudaStream stream) {
  Grid grid;
  grid.block = kTileThreads;
  grid.shared_bytes = sizeof(ForwardShared);
  const int64_t tiles = int64_t{(sizes.queries + kTile - 1) / kTile} * sizes.heads * sizes.batch;
  grid.x = sizes.dim <= 64 ? tiles : tiles * ((sizes.dim + 127) / 128);
  if (sizes.dim <= 64)
    launch_tiles<1>(q_type, kv_type, sizes, arrays, grid, stream);
  else
    launch_tiles<2>(q_type, kv_type, sizes, arrays, grid, stream);
}
#endif

}  // namespace headroom::cuda
