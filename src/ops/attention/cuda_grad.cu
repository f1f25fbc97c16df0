// Device code of attention's gradient for any head size. Scores are computed again from lse, once by the blocks that
// own queries (dq) and once by those that own keys (dk, dv): no sum is shared between blocks.
#include "ops/attention/cuda_kernels.h"
#include "ops/attention/cuda_tile.cuh"
#include "ops/attention/cuda_visible.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"

namespace headroom::cuda {

struct GradShared {
  float stage[kStageFloats];
  float weights[kTile * kTile];
  int begin[kTile];  // of the tile's queries; end 0 where there is no query
  int end[kTile];
  float lse[kTile];  // base 2
  float products[kTile];
};

// One warp per query and head.
template <typename T>
__global__ void attention_products(AttentionSizes sizes, AttentionGradArrays arrays) {
  const int64_t rows = static_cast<int64_t>(sizes.batch) * sizes.queries * sizes.heads;
  const int64_t index = first_index() / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float sum = 0;
  if (index < rows) {
    const T* const o = static_cast<const T*>(arrays.o) + index * sizes.dim;
    const T* const grad_o = static_cast<const T*>(arrays.grad_o) + index * sizes.dim;
    for (int i = lane; i < sizes.dim; i += kWarp) sum += widen(o[i]) * widen(grad_o[i]);
  }
  sum = reduce_warp(sum, Sum());
  if (lane != 0 || index >= rows) return;
  const int64_t head = index % sizes.heads, query = index / sizes.heads % sizes.queries;
  const int64_t row = index / sizes.heads / sizes.queries;
  arrays.products[(row * sizes.heads + head) * sizes.queries + query] = sum;
}

// What a block needs to know of the 64 queries from `query` on.
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

// The probability of a pair from its product; 0 for a pair that is not visible. `slope` as Scores::of says.
HR_DEVICE float probability(const GradShared& shared, const Scores& scores, int query, int key, float product,
                            float& slope) {
  const float score = scores.of(product, slope);
  return key >= shared.begin[query] && key < shared.end[query] ? power_of_two(score - shared.lse[query]) : 0.0f;
}

// A block computes 64 C columns of dq for 64 queries of a head.
template <typename T, int C>
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
  float dq[4][4 * C] = {};
  for (int key = shared->begin[0]; key < last; key += kTile) {
    float p[4][4], ds[4][4];
    multiply_rows(p, q, k.from(key), shared->stage);
    multiply_rows(ds, grad_o, v.from(key), shared->stage);
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

// A block computes 64 C columns of dk and dv for 64 keys of a kv head, over all query heads of its group.
template <typename T, int C>
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
    const HeadRows<T> q = head_rows<T>(arrays.q, place.row, sizes.queries, sizes.heads, head, sizes.dim);
    const HeadRows<T> grad_o = head_rows<T>(arrays.grad_o, place.row, sizes.queries, sizes.heads, head, sizes.dim);
    for (int query = from; query < to; query += kTile) {
      __syncthreads();
      load_queries(*shared, sizes, arrays, visible, place.row, head, query);
      float p[4][4], ds[4][4];  // p: times the slope
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
        store_weights(shared->weights, j, weights);
      }
      add_weighted_rows<C>(dv, shared->weights, grad_o.from(query), column, shared->stage);
      multiply_rows(ds, v, grad_o.from(query), shared->stage);
      HR_UNROLL
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) ds[i][j] = p[i][j] * (ds[i][j] - shared->products[tile_column() + j]);
      store_weights(shared->weights, ds);
      add_weighted_rows<C>(dk, shared->weights, q.from(query), column, shared->stage);
    }
  }
  const float factors[4] = {sizes.scale, sizes.scale, sizes.scale, sizes.scale}, ones[4] = {1, 1, 1, 1};
  store_rows<C, T>(arrays.dk, place.row, sizes.keys, sizes.kv_heads, place.head, sizes.dim, key, column, dk, factors);
  store_rows<C, T>(arrays.dv, place.row, sizes.keys, sizes.kv_heads, place.head, sizes.dim, key, column, dv, ones);
}

#ifdef __CUDACC_RTC__
template __global__ void attention_products<float>(AttentionSizes, AttentionGradArrays);
template __global__ void attention_products<Bf16>(AttentionSizes, AttentionGradArrays);
template __global__ void attention_grad_queries<float, 1>(AttentionSizes, AttentionGradArrays);
template __global__ void attention_grad_queries<Bf16, 1>(AttentionSizes, AttentionGradArrays);
template __global__ void attention_grad_queries<float, 2>(AttentionSizes, AttentionGradArrays);
template __global__ void attention_grad_queries<Bf16, 2>(AttentionSizes, AttentionGradArrays);
template __global__ void attention_grad_keys<float, 1>(AttentionSizes, AttentionGradArrays);
template __global__ void attention_grad_keys<Bf16, 1>(AttentionSizes, AttentionGradArrays);
template __global__ void attention_grad_keys<float, 2>(AttentionSizes, AttentionGradArrays);
template __global__ void attention_grad_keys<Bf16, 2>(AttentionSizes, AttentionGradArrays);
#else
void launch_attention_products(FloatType type, const AttentionSizes& sizes, const AttentionGradArrays& arrays,
                               CudaStream stream) {
  Grid grid;
  grid.x = (int64_t{sizes.batch} * sizes.queries * sizes.heads * kWarp + grid.block - 1) / grid.block;
  with_float_type(type, [&](auto zero) { launch(attention_products<decltype(zero)>, grid, stream, sizes, arrays); });
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
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    if (sizes.dim <= 64) {
      launch(attention_grad_queries<T, 1>, queries, stream, sizes, arrays);
      launch(attention_grad_keys<T, 1>, keys, stream, sizes, arrays);
    } else {
      launch(attention_grad_queries<T, 2>, queries, stream, sizes, arrays);
      launch(attention_grad_keys<T, 2>, keys, stream, sizes, arrays);
    }
  });
}
#endif

}  // namespace headroom::cuda
