// Device code of attention's gradient for any head size. Scores are recomputed from lse, once by the blocks that own
// queries (dq) and once by the blocks that own keys (dk, dv), so that no sum is shared between blocks.
#include "ops/attention/cuda_dropout.cuh"
#include "ops/attention/cuda_kernels.h"
#include "ops/attention/cuda_tile.cuh"
#include "ops/attention/cuda_visible.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"

namespace headroom::cuda {

struct GradShared {
  float stage[kStageFloats];
  float weights[kTile * kTile];
  int begin[kTile];  // for each query of the tile; end is 0 if there is no query
  int end[kTile];
  float lse[kTile];  // base 2
  float products[kTile];
};

// A thread's part of the dot product of two rows: every `lanes`-th 16 bytes, or element where these are not aligned.
template <typename T>
HR_DEVICE float part_of_product(const T* a, const T* b, int dim, int lane, int lanes) {
  constexpr int P = kPack<T>;
  float sum = 0;
  if (dim % P != 0) {
    for (int i = lane; i < dim; i += lanes) sum += widen(a[i]) * widen(b[i]);
    return sum;
  }
  for (int at = lane * P; at < dim; at += lanes * P) {
    const Pack<T, P> x = *reinterpret_cast<const Pack<T, P>*>(a + at), y = *reinterpret_cast<const Pack<T, P>*>(b + at);
    HR_UNROLL
    for (int i = 0; i < P; ++i) sum += widen(x.at[i]) * widen(y.at[i]);
  }
  return sum;
}

// `lanes` threads of a warp, a power of two, per query and head.
template <typename T>
__global__ void attention_products(AttentionSizes sizes, AttentionGradArrays arrays, int lanes) {
  const int64_t rows = static_cast<int64_t>(sizes.batch) * sizes.queries * sizes.heads;
  const int64_t index = first_index() / lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  float sum = 0;
  if (index < rows)
    sum = part_of_product(static_cast<const T*>(arrays.o) + index * sizes.dim,
                          static_cast<const T*>(arrays.grad_o) + index * sizes.dim, sizes.dim, lane, lanes);
  for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAllLanes, sum, distance);
  if (lane != 0 || index >= rows) return;
  const int64_t head = index % sizes.heads, query = index / sizes.heads % sizes.queries;
  const int64_t row = index / sizes.heads / sizes.queries;
  arrays.products[(row * sizes.heads + head) * sizes.queries + query] = sum;
}

// Loads the facts of the 64 queries starting at `query`.
HR_DEVICE void load_queries(GradShared& shared, const AttentionSizes& sizes, const AttentionGradArrays& arrays,
                            const VisibleKeys& visible, int row, int head, int query) {
  const int thread = static_cast<int>(threadIdx.x), at = query + thread;
  if (thread >= kTile) return;
  const bool there = at < sizes.queries;
  const int64_t index = (static_cast<int64_t>(row) * sizes.heads + head) * sizes.queries + at;
  shared.begin[thread] = visible.begin(smaller(at, sizes.queries - 1));
  shared.end[thread] = there ? visible.end(at) : 0;
  shared.lse[thread] = there ? arrays.lse[index] * kLog2E : 0;
  shared.products[thread] = there ? arrays.products[index] : 0;
}

// The probability of a pair from its product; 0 if the key is not visible. `slope` as for Scores::of.
HR_DEVICE float probability(const GradShared& shared, const Scores& scores, int query, int key, float product,
                            float& slope) {
  const float score = scores.of(product, slope);
  return key >= shared.begin[query] && key < shared.end[query] ? power_of_two(score - shared.lse[query]) : 0.0f;
}

// Scales this thread's 4 x 4 part of a gradient (queries by keys) and zeroes what was dropped.
template <bool kDropped>
HR_DEVICE void drop_tile(float (&dp)[4][4], const HeadDropout<kDropped>& dropout, float scale, int query, int key) {
  HR_UNROLL
  for (int i = 0; i < 4; ++i) {
    const uint64_t row_key = dropout.row_key(query + tile_row() + i);
    HR_UNROLL
    for (int j = 0; j < 4; ++j) dp[i][j] *= scale;
    HR_UNROLL
    for (int j = 0; j < 4; j += 2) dropout.drop_pair(dp[i][j], dp[i][j + 1], row_key, key + tile_column() + j);
  }
}

// Zeroes the dropped ones among four keys' weights for one query; bit 4 i + j of `dropped` remembers key i.
template <bool kDropped>
HR_DEVICE void drop_weights(Pack<float, 4>& weights, uint32_t& dropped, int j, const HeadDropout<kDropped>& dropout,
                            int query, int key) {
  const uint64_t row_key = dropout.row_key(query);
  HR_UNROLL
  for (int i = 0; i < 4; ++i)
    if (dropout.dropped(row_key, key + i)) {
      weights.at[i] = 0;
      dropped |= 1u << (4 * i + j);
    }
}

// Each block computes 64 C columns of dq for 64 queries of a head.
template <typename T, int C, bool kDropped>
__global__ void __launch_bounds__(kTileThreads, 2)
    attention_grad_queries(AttentionSizes sizes, AttentionGradArrays arrays) {
  HR_DYNAMIC_SHARED(GradShared, shared);
  const int tiles = (sizes.queries + kTile - 1) / kTile, parts = (sizes.dim + 64 * C - 1) / (64 * C);
  const TilePlace place = tile_place(tiles, sizes.heads, parts);
  const int query = place.tile * kTile, column = place.part * 64 * C;
  const int kv_head = place.head / (sizes.heads / sizes.kv_heads);
  const VisibleKeys visible(sizes, place.row);
  load_queries(*shared, sizes, arrays, visible, place.row, place.head, query);
  __syncthreads();
  const int last = visible.end(smaller(query + kTile, sizes.queries) - 1);
  const HeadRows<T> q =
      head_rows<T>(arrays.q, place.row, sizes.queries, sizes.heads, place.head, sizes.dim).from(query);
  const HeadRows<T> grad_o =
      head_rows<T>(arrays.grad_o, place.row, sizes.queries, sizes.heads, place.head, sizes.dim).from(query);
  HeadRows<T> k = head_rows<T>(arrays.k, place.row, sizes.keys, sizes.kv_heads, kv_head, sizes.dim);
  HeadRows<T> v = head_rows<T>(arrays.v, place.row, sizes.keys, sizes.kv_heads, kv_head, sizes.dim);
  k.count = v.count = last;

  const Scores scores(sizes);
  const HeadDropout<kDropped> dropout(sizes, place.row, place.head);
  float dq[4][4 * C] = {};
  for (int key = first_key<kDropped>(shared->begin[0]); key < last; key += kTile) {
    float p[4][4], ds[4][4];
    multiply_rows(p, q, k.from(key), shared->stage);
    multiply_rows(ds, grad_o, v.from(key), shared->stage);
    if (kDropped) drop_tile(ds, dropout, sizes.dropout.scale, query, key);
    HR_UNROLL
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        float slope;
        const int row = tile_row() + i;
        const float weight = probability(*shared, scores, row, key + tile_column() + j, p[i][j], slope);
        ds[i][j] = weight * (ds[i][j] - shared->products[row]) * slope;
      }
    store_weights(shared->weights, ds);
    add_weighted_rows<C>(dq, shared->weights, k.from(key), column, shared->stage);
  }
  const float factors[4] = {sizes.scale, sizes.scale, sizes.scale, sizes.scale};
  store_rows<C, T>(arrays.dq, place.row, sizes.queries, sizes.heads, place.head, sizes.dim, query, column, dq, factors);
}

// Each block computes 64 C columns of dk and dv for 64 keys of a kv head, over all query heads of its group.
template <typename T, int C, bool kDropped>
__global__ void __launch_bounds__(kTileThreads, C == 1 ? 2 : 1)
    attention_grad_keys(AttentionSizes sizes, AttentionGradArrays arrays) {
  HR_DYNAMIC_SHARED(GradShared, shared);
  const int tiles = (sizes.keys + kTile - 1) / kTile, parts = (sizes.dim + 64 * C - 1) / (64 * C);
  const TilePlace place = tile_place(tiles, sizes.kv_heads, parts);
  const int key = (tiles - 1 - place.tile) * kTile, column = place.part * 64 * C;
  const int group = sizes.heads / sizes.kv_heads;
  const VisibleKeys visible(sizes, place.row);
  const HeadRows<T> k = head_rows<T>(arrays.k, place.row, sizes.keys, sizes.kv_heads, place.head, sizes.dim).from(key);
  const HeadRows<T> v = head_rows<T>(arrays.v, place.row, sizes.keys, sizes.kv_heads, place.head, sizes.dim).from(key);
  const int from = visible.causal() ? key : 0;
  const int to = key < visible.limit() ? visible.first_beginning_at(key + kTile, from, sizes.queries) : from;

  const Scores scores(sizes);
  float dk[4][4 * C] = {}, dv[4][4 * C] = {};
  for (int turn = 0; turn < group; ++turn) {
    const int head = place.head * group + turn;
    const HeadDropout<kDropped> dropout(sizes, place.row, head);
    const HeadRows<T> q = head_rows<T>(arrays.q, place.row, sizes.queries, sizes.heads, head, sizes.dim);
    const HeadRows<T> grad_o = head_rows<T>(arrays.grad_o, place.row, sizes.queries, sizes.heads, head, sizes.dim);
    for (int query = from; query < to; query += kTile) {
      __syncthreads();
      load_queries(*shared, sizes, arrays, visible, place.row, head, query);
      float p[4][4], ds[4][4];  // p: times the slope
      uint32_t dropped = 0;
      multiply_rows(p, k, q.from(query), shared->stage);
      HR_UNROLL
      for (int j = 0; j < 4; ++j) {
        Pack<float, 4> weights;
        HR_UNROLL
        for (int i = 0; i < 4; ++i) {
          float slope;
          weights.at[i] = probability(*shared, scores, tile_column() + j, key + tile_row() + i, p[i][j], slope);
          p[i][j] = weights.at[i] * slope;
        }
        if (kDropped) drop_weights(weights, dropped, j, dropout, query + tile_column() + j, key + tile_row());
        store_weights(shared->weights, j, weights);
      }
      add_weighted_rows<C>(dv, shared->weights, grad_o.from(query), column, shared->stage);
      multiply_rows(ds, v, grad_o.from(query), shared->stage);
      HR_UNROLL
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
          const float kept = dropped >> (4 * i + j) & 1 ? 0.0f : ds[i][j] * kept_scale<kDropped>(sizes);
          ds[i][j] = p[i][j] * (kept - shared->products[tile_column() + j]);
        }
      store_weights(shared->weights, ds);
      add_weighted_rows<C>(dk, shared->weights, q.from(query), column, shared->stage);
    }
  }
  const float factors[4] = {sizes.scale, sizes.scale, sizes.scale, sizes.scale};
  const float kept = kept_scale<kDropped>(sizes), value_factors[4] = {kept, kept, kept, kept};
  store_rows<C, T>(arrays.dk, place.row, sizes.keys, sizes.kv_heads, place.head, sizes.dim, key, column, dk, factors);
  store_rows<C, T>(arrays.dv, place.row, sizes.keys, sizes.kv_heads, place.head, sizes.dim, key, column, dv,
                   value_factors);
}

#ifdef __CUDACC_RTC__
template __global__ void attention_products<float>(AttentionSizes, AttentionGradArrays, int);
template __global__ void attention_products<Bf16>(AttentionSizes, AttentionGradArrays, int);
template __global__ void attention_products<Half>(AttentionSizes, AttentionGradArrays, int);
#define HR_ATTENTION_GRAD(T, C, kDropped)                                                               \
  template __global__ void attention_grad_queries<T, C, kDropped>(AttentionSizes, AttentionGradArrays); \
  template __global__ void attention_grad_keys<T, C, kDropped>(AttentionSizes, AttentionGradArrays);
HR_ATTENTION_GRAD(float, 1, false)
HR_ATTENTION_GRAD(Bf16, 1, false)
HR_ATTENTION_GRAD(Half, 1, false)
HR_ATTENTION_GRAD(float, 2, false)
HR_ATTENTION_GRAD(Bf16, 2, false)
HR_ATTENTION_GRAD(Half, 2, false)
HR_ATTENTION_GRAD(float, 1, true)
HR_ATTENTION_GRAD(Bf16, 1, true)
HR_ATTENTION_GRAD(Half, 1, true)
HR_ATTENTION_GRAD(float, 2, true)
HR_ATTENTION_GRAD(Bf16, 2, true)
HR_ATTENTION_GRAD(Half, 2, true)
#else
template <int C, bool kDropped>
static void launch_grad_tiles(FloatType type, const AttentionSizes& sizes, const AttentionGradArrays& arrays,
                              const Grid& queries, const Grid& keys, CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch(attention_grad_queries<T, C, kDropped>, queries, stream, sizes, arrays);
    launch(attention_grad_keys<T, C, kDropped>, keys, stream, sizes, arrays);
  });
}

void launch_attention_products(FloatType type, const AttentionSizes& sizes, const AttentionGradArrays& arrays,
                               CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    int lanes = kWarp;
    while (sizes.dim % kPack<T> == 0 && lanes / 2 * kPack<T> >= sizes.dim) lanes /= 2;
    Grid grid;
    grid.x = (int64_t{sizes.batch} * sizes.queries * sizes.heads * lanes + grid.block - 1) / grid.block;
    launch(attention_products<T>, grid, stream, sizes, arrays, lanes);
  });
}

void launch_attention_grad(FloatType type, const AttentionSizes& sizes, const AttentionGradArrays& arrays,
                           CudaStream stream) {
  launch_attention_products(type, sizes, arrays, stream);
  const int64_t parts = sizes.dim <= 64 ? 1 : (sizes.dim + 127) / 128;
  Grid queries, keys;
  queries.block = keys.block = kTileThreads;
  queries.shared_bytes = keys.shared_bytes = sizeof(GradShared);
  queries.x = (sizes.queries + kTile - 1) / kTile * parts * sizes.heads * sizes.batch;
  keys.x = (sizes.keys + kTile - 1) / kTile * parts * sizes.kv_heads * sizes.batch;
  const auto run = [&](auto small, auto large) {
    (sizes.dim <= 64 ? small : large)(type, sizes, arrays, queries, keys, stream);
  };
  if (sizes.dropout.below > 0)
    run(&launch_grad_tiles<1, true>, &launch_grad_tiles<2, true>);
  else
    run(&launch_grad_tiles<1, false>, &launch_grad_tiles<2, false>);
}
#endif

}  // namespace headroom::cuda
