// Device code of attention's gradient on tensor cores: bf16, heads of 64, 96 or 128, sm_80 and later. As in
// cuda_grad.cu, scores are recomputed by the blocks that own queries (dq) and by those that own keys (dk, dv). Both
// keep rows of two tensors in shared memory, 16 M for each warp, and stream the rows of the other two, R at a time,
// while the next ones are copied. What a warp loads of streamed rows is used for its M times sixteen rows: M is two if
// registers have room for the sums.
#ifndef __CUDACC_RTC__
#include <algorithm>
#endif

#include "ops/attention/cuda_dropout.cuh"
#include "ops/attention/cuda_mma.h"
#include "ops/attention/cuda_mma_tile.cuh"
#include "ops/attention/cuda_visible.cuh"
#include "ops/cuda/launch.cuh"

namespace headroom::cuda {

template <int M>
constexpr int kMmaOwned = 16 * kMmaWarps* M;

template <int D, int M, int R, bool kDropped>
struct MmaGradShared {
  Bf16 owned[2][kMmaOwned<M> * kMmaStride<D>];
  Bf16 streamed[2][2][R * kMmaStride<D>];  // of two iterations
  float lse[2][R];                         // of streamed queries
  float products[2][R];
  uint64_t row_keys[2][kDropped ? R : 1];  // of streamed queries
};

// Starts to copy two tensors' rows.
template <int D, int R>
HR_DEVICE void begin_pair(Bf16 (&tiles)[2][R * kMmaStride<D>], const MmaRows& one, const MmaRows& other, int first) {
  begin_rows<D, R>(tiles[0], rows_from(one, first));
  begin_rows<D, R>(tiles[1], rows_from(other, first));
}

// Scales this thread's part of a gradient (sixteen queries by the keys of a tile) and zeroes what was dropped.
template <int N, bool kDropped>
HR_DEVICE void drop_mma_gradient(float (&dp)[N][4], const HeadDropout<kDropped>& dropout, float scale, int query,
                                 int key) {
  HR_UNROLL
  for (int half = 0; half < 2; ++half) {
    const uint64_t row_key = dropout.row_key(query + mma_row() + 8 * half);
    HR_UNROLL
    for (int n = 0; n < N; ++n) {
      dp[n][2 * half] *= scale;
      dp[n][2 * half + 1] *= scale;
      dropout.drop_pair(dp[n][2 * half], dp[n][2 * half + 1], row_key, key + 8 * n + mma_column());
    }
  }
}

template <int D, int M, int R, bool kCapped, bool kDropped>
HR_DEVICE void mma_grad_queries(const AttentionSizes& sizes, const AttentionGradArrays& arrays) {
  constexpr int N = R / 8, kOwned = kMmaOwned<M>;
  using Shared = MmaGradShared<D, M, R, kDropped>;
  HR_DYNAMIC_SHARED(Shared, shared);
  const TilePlace place = tile_place((sizes.queries + kOwned - 1) / kOwned, sizes.heads, 1);
  const int query = place.tile * kOwned, kv_head = place.head / (sizes.heads / sizes.kv_heads);
  const int own = static_cast<int>(threadIdx.x) / kWarp * 16 * M,
            final_query = smaller(query + kOwned, sizes.queries) - 1;
  const VisibleKeys visible(sizes, place.row);
  begin_pair<D, kOwned>(shared->owned, mma_rows<D>(arrays.q, place.row, sizes.queries, sizes.heads, place.head),
                        mma_rows<D>(arrays.grad_o, place.row, sizes.queries, sizes.heads, place.head), query);
  const int first = first_key<kDropped>(visible.begin(query)), last = visible.end(final_query);
  const int latest_begin = visible.begin(final_query), earliest_end = visible.end(query);
  MmaRows k = mma_rows<D>(arrays.k, place.row, sizes.keys, sizes.kv_heads, kv_head);
  MmaRows v = mma_rows<D>(arrays.v, place.row, sizes.keys, sizes.kv_heads, kv_head);
  k.count = v.count = last;
  begin_pair<D, R>(shared->streamed[0], k, v, first);
  end_copy_group();

  float lse[2 * M], products[2 * M];
  int begin[2 * M], end[2 * M];
  HR_UNROLL
  for (int half = 0; half < 2 * M; ++half) {
    const int at = query + own + mma_row() + 8 * half;
    const int64_t index = (static_cast<int64_t>(place.row) * sizes.heads + place.head) * sizes.queries + at;
    const bool there = at < sizes.queries;
    lse[half] = there ? arrays.lse[index] * kLog2E : 0;
    products[half] = there ? arrays.products[index] : 0;
    begin[half] = visible.begin(smaller(at, final_query)) - mma_column();
    end[half] = visible.end(smaller(at, final_query)) - mma_column();
  }

  const MmaScores<kCapped> scores(sizes);
  const HeadDropout<kDropped> dropout(sizes, place.row, place.head);
  float dq[M][D / 8][4] = {};
  int turn = 0;
  for (int key = first; key < last; key += R, turn ^= 1) {
    if (key + R < last) begin_pair<D, R>(shared->streamed[turn ^ 1], k, v, key + R);
    end_copy_group();
    await_copies<1>();
    __syncthreads();
    float s[M][N][4], ds[M][N][4];
    mma_rows_product<D>(s, shared->owned[0] + own * kMmaStride<D>, shared->streamed[turn][0]);
    mma_rows_product<D>(ds, shared->owned[1] + own * kMmaStride<D>, shared->streamed[turn][1]);
    const bool whole = latest_begin <= key && earliest_end >= key + R;
    HR_UNROLL
    for (int m = 0; m < M; ++m) {
      if (kDropped) drop_mma_gradient(ds[m], dropout, sizes.dropout.scale, query + own + 16 * m, key);
      HR_UNROLL
      for (int n = 0; n < N; ++n)
        for (int i = 0; i < 4; ++i) {
          float slope;
          const float score = scores.of(s[m][n][i], slope);
          const int at = key + 8 * n + i % 2, half = 2 * m + i / 2;
          const bool seen = whole || (at >= begin[half] && at < end[half]);
          const float p = seen ? power_of_two(score * scores.factor() - lse[half]) : 0.0f;
          ds[m][n][i] = p * (ds[m][n][i] - products[half]) * slope;
        }
    }
    mma_weighted_rows<D>(dq, ds, shared->streamed[turn][0]);
    __syncthreads();
  }
  await_copies<0>();
  HR_UNROLL
  for (int m = 0; m < M; ++m)
    store_mma_rows<D>(arrays.dq, place.row, sizes.queries, sizes.heads, place.head, query + own + 16 * m, dq[m],
                      sizes.scale, sizes.scale);
}

// One iteration of a block that owns keys, over the queries of one head starting at `query`.
template <int D, int M, int R, bool kDropped>
HR_DEVICE void begin_queries(MmaGradShared<D, M, R, kDropped>& shared, int turn, const AttentionSizes& sizes,
                             const AttentionGradArrays& arrays, int row, int head, int query) {
  begin_pair<D, R>(shared.streamed[turn], mma_rows<D>(arrays.q, row, sizes.queries, sizes.heads, head),
                   mma_rows<D>(arrays.grad_o, row, sizes.queries, sizes.heads, head), query);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread >= R) return;
  if (kDropped) shared.row_keys[turn][thread] = HeadDropout<kDropped>(sizes, row, head).row_key(query + thread);
  const bool there = query + thread < sizes.queries;
  const int64_t index = (static_cast<int64_t>(row) * sizes.heads + head) * sizes.queries + query + (there ? thread : 0);
  begin_copy_of_float(&shared.lse[turn][thread], arrays.lse + index, there);
  begin_copy_of_float(&shared.products[turn][thread], arrays.products + index, there);
}

// Probabilities of keys (rows) and queries (columns) from their products, and the slopes of the scores.
template <int N, bool kCapped>
HR_DEVICE void mma_probabilities(float (&s)[N][4], float (&slopes)[N][4], const MmaScores<kCapped>& scores,
                                 const float* lse, const VisibleKeys& visible, int queries, int key, int query,
                                 bool whole) {
  HR_UNROLL
  for (int n = 0; n < N; ++n)
    for (int i = 0; i < 2; ++i) {
      const int column = 8 * n + mma_column() + i;
      int begin = 0, end = 0x7fffffff;
      if (!whole) {
        begin = query + column < queries ? visible.begin(query + column) : 0x7fffffff;
        end = query + column < queries ? visible.end(query + column) : 0;
      }
      const float base = lse[column] * kLog2E;
      for (int half = 0; half < 2; ++half) {
        float& at = s[n][2 * half + i];
        const float score = scores.of(at, slopes[n][2 * half + i]);
        const bool seen = key + 8 * half >= begin && key + 8 * half < end;
        at = seen ? power_of_two(score * scores.factor() - base) : 0.0f;
      }
    }
}

// weights = the kept probabilities of keys (rows) and queries (columns); bit 4 n + i of the result is set if [n][i] is
// dropped.
template <int N, bool kDropped>
HR_DEVICE uint32_t keep_mma_weights(float (&weights)[N][4], const float (&p)[N][4], const uint64_t* row_keys,
                                    const HeadDropout<kDropped>& dropout, int key) {
  static_assert(4 * N <= 32, "a bit for each");
  uint32_t dropped = 0;
  HR_UNROLL
  for (int n = 0; n < N; ++n)
    for (int i = 0; i < 4; ++i) {
      const bool drops = dropout.dropped(row_keys[8 * n + mma_column() + i % 2], key + 8 * (i / 2));
      weights[n][i] = drops ? 0.0f : p[n][i];
      dropped |= static_cast<uint32_t>(drops) << (4 * n + i);
    }
  return dropped;
}

template <int D, int M, int R, bool kCapped, bool kDropped>
HR_DEVICE void mma_grad_keys(const AttentionSizes& sizes, const AttentionGradArrays& arrays) {
  constexpr int N = R / 8, kOwned = kMmaOwned<M>;
  static_assert(!kCapped || !kDropped, "slopes lie where what is kept would");
  using Shared = MmaGradShared<D, M, R, kDropped>;
  HR_DYNAMIC_SHARED(Shared, shared);
  const int tiles = (sizes.keys + kOwned - 1) / kOwned, group = sizes.heads / sizes.kv_heads;
  const TilePlace place = tile_place(tiles, sizes.kv_heads, 1);
  const int key = (tiles - 1 - place.tile) * kOwned, own = static_cast<int>(threadIdx.x) / kWarp * 16 * M;
  const VisibleKeys visible(sizes, place.row);
  const int from = visible.causal() ? key : 0;
  const int to = key < visible.limit() ? visible.first_beginning_at(key + kOwned, from, sizes.queries) : from;
  const int pieces = (to - from + R - 1) / R, turns = group * pieces;
  begin_pair<D, kOwned>(shared->owned, mma_rows<D>(arrays.k, place.row, sizes.keys, sizes.kv_heads, place.head),
                        mma_rows<D>(arrays.v, place.row, sizes.keys, sizes.kv_heads, place.head), key);
  if (turns > 0) begin_queries<D, M, R, kDropped>(*shared, 0, sizes, arrays, place.row, place.head * group, from);
  end_copy_group();

  const MmaScores<kCapped> scores(sizes);
  float dk[M][D / 8][4] = {}, dv[M][D / 8][4] = {};
  for (int turn = 0; turn < turns; ++turn) {
    if (turn + 1 < turns)
      begin_queries<D, M, R, kDropped>(*shared, (turn + 1) % 2, sizes, arrays, place.row,
                                       place.head * group + (turn + 1) / pieces, from + (turn + 1) % pieces * R);
    end_copy_group();
    await_copies<1>();
    __syncthreads();
    const Bf16* const q = shared->streamed[turn % 2][0];
    const Bf16* const grad_o = shared->streamed[turn % 2][1];
    const int query = from + turn % pieces * R;
    const bool whole =
        query + R <= sizes.queries && visible.begin(query + R - 1) <= key && visible.end(query) >= key + kOwned;
    float s[M][N][4], ds[M][N][4];
    mma_rows_product<D>(s, shared->owned[0] + own * kMmaStride<D>, q);
    uint32_t dropped[M] = {};
    HR_UNROLL
    for (int m = 0; m < M; ++m) {
      const int first = key + own + 16 * m + mma_row();
      mma_probabilities<N>(s[m], ds[m], scores, shared->lse[turn % 2], visible, sizes.queries, first, query, whole);
      if (kDropped) {
        const HeadDropout<kDropped> dropout(sizes, place.row, place.head * group + turn / pieces);
        dropped[m] = keep_mma_weights<N>(ds[m], s[m], shared->row_keys[turn % 2], dropout, first);
      }
    }
    mma_weighted_rows<D>(dv, kDropped ? ds : s, grad_o);
    if (kCapped) {
      HR_UNROLL
      for (int m = 0; m < M; ++m)
        for (int n = 0; n < N; ++n)
          for (int i = 0; i < 4; ++i) s[m][n][i] *= ds[m][n][i];
    }
    mma_rows_product<D>(ds, shared->owned[1] + own * kMmaStride<D>, grad_o);
    HR_UNROLL
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n)
        for (int i = 0; i < 4; ++i) {
          const float kept = dropped[m] >> (4 * n + i) & 1 ? 0.0f : ds[m][n][i] * kept_scale<kDropped>(sizes);
          ds[m][n][i] = s[m][n][i] * (kept - shared->products[turn % 2][8 * n + mma_column() + i % 2]);
        }
    mma_weighted_rows<D>(dk, ds, q);
    __syncthreads();
  }
  await_copies<0>();
  HR_UNROLL
  for (int m = 0; m < M; ++m) {
    const int first = key + own + 16 * m;
    store_mma_rows<D>(arrays.dk, place.row, sizes.keys, sizes.kv_heads, place.head, first, dk[m], sizes.scale,
                      sizes.scale);
    store_mma_rows<D>(arrays.dv, place.row, sizes.keys, sizes.kv_heads, place.head, first, dv[m],
                      kept_scale<kDropped>(sizes), kept_scale<kDropped>(sizes));
  }
}

template <int D, int M, int R, bool kCapped, bool kDropped>
__global__ void __launch_bounds__(kMmaThreads, 2)
    attention_mma_grad_queries(AttentionSizes sizes, AttentionGradArrays arrays) {
#ifdef HR_HAS_MMA
  mma_grad_queries<D, M, R, kCapped, kDropped>(sizes, arrays);
#else
  __trap();
#endif
}
template <int D, int M, int R, bool kCapped, bool kDropped>
__global__ void __launch_bounds__(kMmaThreads, 2)
    attention_mma_grad_keys(AttentionSizes sizes, AttentionGradArrays arrays) {
#ifdef HR_HAS_MMA
  mma_grad_keys<D, M, R, kCapped, kDropped>(sizes, arrays);
#else
  __trap();
#endif
}

// Block sizes: M and R for blocks that own queries and for those that own keys, which hold two sums. Measured on an
// H200 at 1024 and 4096 tokens: for heads of 64, one sixteen of keys per warp is faster by 5 %, two of queries by 17 %.
// For long heads the roomy variant is faster by 20 % (queries) and 11 % (keys) if two such blocks share a
// multiprocessor; the tight one is for devices with less shared memory.
template <int D, bool kRoomy>
struct MmaGradCut {
  static constexpr bool kShort = D == 128 && !kRoomy;
  static constexpr int kQueryTimes = kShort ? 1 : 2, kQueryRows = D == 64 ? 64 : 32;
  static constexpr int kKeyTimes = 1, kKeyRows = kShort ? 32 : 64;
};

#ifdef __CUDACC_RTC__
#define HR_MMA_GRAD_CUT(D, kRoomy, kCapped, kDropped)                                                        \
  template __global__ void attention_mma_grad_queries<D, MmaGradCut<D, kRoomy>::kQueryTimes,                 \
                                                      MmaGradCut<D, kRoomy>::kQueryRows, kCapped, kDropped>( \
      AttentionSizes, AttentionGradArrays);                                                                  \
  template __global__ void attention_mma_grad_keys<D, MmaGradCut<D, kRoomy>::kKeyTimes,                      \
                                                   MmaGradCut<D, kRoomy>::kKeyRows, kCapped, kDropped>(      \
      AttentionSizes, AttentionGradArrays);
#define HR_MMA_GRAD(D, kRoomy)             \
  HR_MMA_GRAD_CUT(D, kRoomy, false, false) \
  HR_MMA_GRAD_CUT(D, kRoomy, true, false)  \
  HR_MMA_GRAD_CUT(D, kRoomy, false, true)
HR_MMA_GRAD(64, false)
HR_MMA_GRAD(96, false)
HR_MMA_GRAD(128, false)
HR_MMA_GRAD(128, true)
#else
template <int D, bool kRoomy>
static constexpr int64_t mma_grad_shared() {
  using Cut = MmaGradCut<D, kRoomy>;
  return std::max(sizeof(MmaGradShared<D, Cut::kQueryTimes, Cut::kQueryRows, true>),
                  sizeof(MmaGradShared<D, Cut::kKeyTimes, Cut::kKeyRows, true>));
}

int64_t attention_mma_grad_shared(int64_t dim, bool roomy) {
  int64_t bytes = 0;
  with_mma_head(dim, [&](auto head) {
    constexpr int D = decltype(head)::value;
    bytes = roomy ? mma_grad_shared<D, true>() : mma_grad_shared<D, false>();
  });
  return bytes;
}

// One block per M times 64 of `rows` and per head and batch row.
template <int D, int M, int R, bool kDropped>
static Grid mma_grad_grid(int rows, int heads, int batch) {
  Grid grid;
  grid.block = kMmaThreads;
  grid.shared_bytes = sizeof(MmaGradShared<D, M, R, kDropped>);
  grid.x = int64_t{(rows + kMmaOwned<M> - 1) / kMmaOwned<M>} * heads * batch;
  return grid;
}

template <int D, bool kRoomy, bool kCapped, bool kDropped>
static void launch_mma_grad_of(const AttentionSizes& sizes, const AttentionGradArrays& arrays, CudaStream stream) {
  using Cut = MmaGradCut<D, kRoomy>;
  constexpr int QM = Cut::kQueryTimes, QR = Cut::kQueryRows, KM = Cut::kKeyTimes, KR = Cut::kKeyRows;
  launch(attention_mma_grad_queries<D, QM, QR, kCapped, kDropped>,
         mma_grad_grid<D, QM, QR, kDropped>(sizes.queries, sizes.heads, sizes.batch), stream, sizes, arrays);
  launch(attention_mma_grad_keys<D, KM, KR, kCapped, kDropped>,
         mma_grad_grid<D, KM, KR, kDropped>(sizes.keys, sizes.kv_heads, sizes.batch), stream, sizes, arrays);
}

template <int D, bool kRoomy>
static void launch_mma_grad_cut(const AttentionSizes& sizes, const AttentionGradArrays& arrays, CudaStream stream) {
  if (sizes.softcap > 0)
    launch_mma_grad_of<D, kRoomy, true, false>(sizes, arrays, stream);
  else if (sizes.dropout.below > 0)
    launch_mma_grad_of<D, false, false, true>(sizes, arrays, stream);  // the roomy variant lacks the registers for it
  else
    launch_mma_grad_of<D, kRoomy, false, false>(sizes, arrays, stream);
}

void launch_attention_mma_grad(const AttentionSizes& sizes, const AttentionGradArrays& arrays, bool roomy,
                               CudaStream stream) {
  launch_attention_products(FloatType::bf16, sizes, arrays, stream);
  with_mma_head(sizes.dim, [&](auto head) {
    constexpr int D = decltype(head)::value;
    if (D == 128 && roomy)  // other heads have one variant
      launch_mma_grad_cut<D, D == 128>(sizes, arrays, stream);
    else
      launch_mma_grad_cut<D, false>(sizes, arrays, stream);
  });
}
#endif

}  // namespace headroom::cuda
