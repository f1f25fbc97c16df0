// Device code of decoding: one query per batch row against a long cache, so that reading the cache dominates. The keys
// are cut into chunks, each read once for all query heads of a group; a second kernel combines the chunks.
//
// A cache tells where the keys of a row are:
//   AttentionSizes sizes;                      of the call
//   KeySpan seen(int row);                     the keys that the query of a batch row sees
//   int64_t row(int row, int key);             the row of k and v that holds a key
#pragma once

#include "ops/attention/cuda_kernels.h"
#include "ops/attention/cuda_visible.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"

namespace headroom::cuda {

// Stores N elements of a row in a cache of another type.
template <int N, typename K, typename C>
HR_DEVICE void append_elements(const K* from, C* to) {
  const Pack<K, N> found = *reinterpret_cast<const Pack<K, N>*>(from);
  Pack<C, N> stored;
  HR_UNROLL
  for (int j = 0; j < N; ++j) stored.at[j] = narrow<C>(widen(found.at[j]));
  *reinterpret_cast<Pack<C, N>*>(to) = stored;
}

struct KeySpan {
  int begin, end;
};

constexpr int kDecodeThreads = 128;
constexpr int kDecodeWarps = kDecodeThreads / kWarp;
constexpr int kDecodeColumns = 128;  // columns of o that are summed at a time
constexpr int kKeyLanes = 4;         // threads that share a key: 64 bytes of it per access

// Columns of a head of q in shared memory.
HR_DEVICE int padded_columns(int dim) { return (dim + 7) / 8 * 8; }

// N elements starting at `column`; zeros from `dim` on.
template <int N, typename T>
HR_DEVICE void load_elements(float (&values)[N], const T* row, int column, int dim) {
  constexpr int P = N < kPack<T> ? N : kPack<T>;
  if (dim % P == 0) {
    HR_UNROLL
    for (int part = 0; part < N; part += P) {
      if (column + part < dim) {
        const Pack<T, P> pack = *reinterpret_cast<const Pack<T, P>*>(row + column + part);
        HR_UNROLL
        for (int i = 0; i < P; ++i) values[part + i] = widen(pack.at[i]);
      } else {
        HR_UNROLL
        for (int i = 0; i < P; ++i) values[part + i] = 0;
      }
    }
  } else {
    HR_UNROLL
    for (int i = 0; i < N; ++i) values[i] = column + i < dim ? widen(row[column + i]) : 0.0f;
  }
}

// The work of a decoding block: up to H query heads starting at `head`, of which `heads` exist, and the keys [begin,
// end) of a chunk.
struct DecodePlace {
  int chunk, head, heads, kv_head, row, begin, end;
};

template <int H, typename Cache>
HR_DEVICE DecodePlace decode_place(const Cache& cache, int chunks) {
  const AttentionSizes& sizes = cache.sizes;
  const int group = sizes.heads / sizes.kv_heads, turns = (group + H - 1) / H;
  int64_t at = blockIdx.x;
  DecodePlace place;
  place.chunk = static_cast<int>(at % chunks);
  at /= chunks;
  const int turn = static_cast<int>(at % turns);
  at /= turns;
  place.kv_head = static_cast<int>(at % sizes.kv_heads);
  place.row = static_cast<int>(at / sizes.kv_heads);
  place.head = place.kv_head * group + turn * H;
  place.heads = smaller(H, group - turn * H);
  const KeySpan seen = cache.seen(place.row);
  place.begin = larger(seen.begin, place.chunk * kDecodeKeys);
  place.end = smaller(seen.end, (place.chunk + 1) * kDecodeKeys);
  return place;
}

// Scores of the chunk's keys, stored in p [H][kDecodeKeys]; minus infinity for keys that are not visible.
template <int H, typename KV, typename Cache>
HR_DEVICE void decode_scores(const Cache& cache, const DecodePlace& place, const KV* k, const float* q, float* p) {
  constexpr int N = kPack<KV>;
  const AttentionSizes& sizes = cache.sizes;
  const int columns = padded_columns(sizes.dim), lane = static_cast<int>(threadIdx.x) % kKeyLanes;
  const int64_t stride = static_cast<int64_t>(sizes.kv_heads) * sizes.dim;
  const Scores scores(sizes);
  for (int at = static_cast<int>(threadIdx.x) / kKeyLanes; at < kDecodeKeys; at += kDecodeThreads / kKeyLanes) {
    const int key = place.chunk * kDecodeKeys + at;
    const bool there = key >= place.begin && key < place.end;
    float sums[H] = {};
    if (there) {
      const KV* const own_row = k + cache.row(place.row, key) * stride;
      for (int column = lane * N; column < sizes.dim; column += kKeyLanes * N) {
        float values[N];
        load_elements<N>(values, own_row, column, sizes.dim);
        HR_UNROLL
        for (int h = 0; h < H; ++h)
          for (int i = 0; i < N; i += 4) {
            const Pack<float, 4> own = *reinterpret_cast<const Pack<float, 4>*>(q + h * columns + column + i);
            HR_UNROLL
            for (int j = 0; j < 4; ++j) sums[h] += own.at[j] * values[i + j];
          }
      }
    }
    HR_UNROLL
    for (int h = 0; h < H; ++h) {
      for (int distance = kKeyLanes / 2; distance > 0; distance /= 2)
        sums[h] += __shfl_xor_sync(kAllLanes, sums[h], distance);
      if (lane == 0) p[h * kDecodeKeys + at] = there ? scores.of(sums[h]) : minus_infinity();
    }
  }
}

// Turns scores into weights relative to the chunk's largest score; one warp per head.
template <int H>
HR_DEVICE void decode_softmax(const AttentionSizes& sizes, const DecodePlace& place, float* p,
                              const DecodeArrays& partial) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int h = static_cast<int>(threadIdx.x) / kWarp; h < H; h += kDecodeWarps) {
    float* const row = p + h * kDecodeKeys;
    float largest = minus_infinity(), sum = 0;
    for (int i = lane; i < kDecodeKeys; i += kWarp) largest = fmaxf(largest, row[i]);
    largest = reduce_warp(largest, Max());
    for (int i = lane; i < kDecodeKeys; i += kWarp) {
      row[i] = power_of_two(row[i] - largest);
      sum += row[i];
    }
    sum = reduce_warp(sum, Sum());
    if (lane != 0 || h >= place.heads) continue;
    const int64_t at = (static_cast<int64_t>(place.row) * sizes.heads + place.head + h) * partial.chunks + place.chunk;
    partial.maximum[at] = largest;
    partial.sum[at] = sum;
  }
}

// Weighted sums of the chunk's rows of v, for 128 columns starting at `column`, stored in partial.o. Eight columns per
// thread: 8 or 16 threads cover all of them, and the other threads take other keys. `sums` is shared memory
// [warps][H][128].
template <int H, typename KV, typename Cache>
HR_DEVICE void decode_values(const Cache& cache, const DecodePlace& place, const KV* v, int column, const float* p,
                             float* sums, const DecodeArrays& partial) {
  const AttentionSizes& sizes = cache.sizes;
  const int thread = static_cast<int>(threadIdx.x), lanes = sizes.dim <= 64 ? 8 : 16;
  const int64_t stride = static_cast<int64_t>(sizes.kv_heads) * sizes.dim;
  const int own = thread % lanes * 8, from = place.chunk * kDecodeKeys;
  float o[H][8] = {};
  for (int key = place.begin + thread / lanes; key < place.end; key += kDecodeThreads / lanes) {
    float values[8];
    load_elements<8>(values, v + cache.row(place.row, key) * stride, column + own, sizes.dim);
    HR_UNROLL
    for (int h = 0; h < H; ++h) {
      const float weight = p[h * kDecodeKeys + key - from];
      HR_UNROLL
      for (int i = 0; i < 8; ++i) o[h][i] += weight * values[i];
    }
  }
  HR_UNROLL
  for (int h = 0; h < H; ++h)
    for (int i = 0; i < 8; ++i) {
      for (int distance = kWarp / 2; distance >= lanes; distance /= 2)
        o[h][i] += __shfl_xor_sync(kAllLanes, o[h][i], distance);
      if (thread % kWarp < lanes) sums[(thread / kWarp * H + h) * kDecodeColumns + own + i] = o[h][i];
    }
  __syncthreads();
  const int width = smaller(lanes * 8, sizes.dim - column);
  for (int item = thread; item < place.heads * kDecodeColumns; item += kDecodeThreads) {
    const int h = item / kDecodeColumns, at = item % kDecodeColumns;
    if (at >= width) continue;
    float sum = 0;
    for (int warp = 0; warp < kDecodeWarps; ++warp) sum += sums[(warp * H + h) * kDecodeColumns + at];
    const int64_t row = static_cast<int64_t>(place.row) * sizes.heads + place.head + h;
    partial.o[(row * partial.chunks + place.chunk) * sizes.dim + column + at] = sum;
  }
}

template <typename Q, typename KV, int H, typename Cache>
__global__ void __launch_bounds__(kDecodeThreads)
    attention_decode(Cache cache, AttentionArrays arrays, DecodeArrays partial) {
  HR_DYNAMIC_SHARED(float, shared);
  const AttentionSizes& sizes = cache.sizes;
  const DecodePlace place = decode_place<H>(cache, partial.chunks);
  if (place.begin >= place.end) return;  // for all threads of the block
  const int columns = padded_columns(sizes.dim);
  float* const p = shared;
  float* const sums = p + H * kDecodeKeys;
  float* const q = sums + kDecodeWarps * H * kDecodeColumns;
  const Q* const queries =
      static_cast<const Q*>(arrays.q) + (static_cast<int64_t>(place.row) * sizes.heads + place.head) * sizes.dim;
  for (int i = static_cast<int>(threadIdx.x); i < H * columns; i += kDecodeThreads) {
    const int h = i / columns, column = i % columns;
    q[i] = h < place.heads && column < sizes.dim ? widen(queries[h * sizes.dim + column]) : 0.0f;
  }
  __syncthreads();
  const int64_t first = static_cast<int64_t>(place.kv_head) * sizes.dim;
  decode_scores<H>(cache, place, static_cast<const KV*>(arrays.k) + first, q, p);
  __syncthreads();
  decode_softmax<H>(sizes, place, p, partial);
  for (int column = 0; column < sizes.dim; column += kDecodeColumns) {
    __syncthreads();
    decode_values<H>(cache, place, static_cast<const KV*>(arrays.v) + first, column, p, sums, partial);
  }
}

// Computes o of one head of a batch row from its chunks.
template <typename Q, typename Cache>
__global__ void __launch_bounds__(kDecodeThreads)
    attention_join(Cache cache, AttentionArrays arrays, DecodeArrays partial) {
  const AttentionSizes& sizes = cache.sizes;
  const int64_t index = blockIdx.x;  // batch row and head
  const KeySpan seen = cache.seen(static_cast<int>(index / sizes.heads));
  const int from = seen.begin / kDecodeKeys, to = (seen.end + kDecodeKeys - 1) / kDecodeKeys;
  const float* const maximum = partial.maximum + index * partial.chunks;
  const float* const sums = partial.sum + index * partial.chunks;
  float largest = minus_infinity(), total = 0;
  for (int chunk = from; chunk < to; ++chunk) largest = fmaxf(largest, maximum[chunk]);
  for (int chunk = from; chunk < to; ++chunk) total += sums[chunk] * power_of_two(maximum[chunk] - largest);
  for (int column = static_cast<int>(threadIdx.x); column < sizes.dim; column += kDecodeThreads) {
    float sum = 0;
    for (int chunk = from; chunk < to; ++chunk)
      sum += power_of_two(maximum[chunk] - largest) * partial.o[(index * partial.chunks + chunk) * sizes.dim + column];
    static_cast<Q*>(arrays.o)[index * sizes.dim + column] = narrow<Q>(from < to ? sum / total : 0.0f);
  }
}

#ifndef __CUDACC_RTC__
template <typename Q, typename KV, int H, typename Cache>
void launch_decode_heads(const Cache& cache, const AttentionArrays& arrays, const DecodeArrays& partial,
                         CudaStream stream) {
  const AttentionSizes& sizes = cache.sizes;
  const int64_t turns = (sizes.heads / sizes.kv_heads + H - 1) / H;
  Grid grid;
  grid.x = partial.chunks * turns * sizes.kv_heads * sizes.batch;
  grid.block = kDecodeThreads;
  grid.shared_bytes = 4 * H * (kDecodeKeys + kDecodeWarps * kDecodeColumns + int64_t{(sizes.dim + 7) / 8 * 8});
  launch(attention_decode<Q, KV, H, Cache>, grid, stream, cache, arrays, partial);
}

// One query for each row of the batch.
template <typename Q, typename KV, typename Cache>
void launch_decode(const Cache& cache, const AttentionArrays& arrays, const DecodeArrays& partial, CudaStream stream) {
  constexpr int kWideHead = 512;  // from this size on, shared memory has room for one head only
  const int group = cache.sizes.heads / cache.sizes.kv_heads;
  if (group == 1 || cache.sizes.dim > kWideHead)
    launch_decode_heads<Q, KV, 1>(cache, arrays, partial, stream);
  else if (group <= 4)
    launch_decode_heads<Q, KV, 4>(cache, arrays, partial, stream);
  else
    launch_decode_heads<Q, KV, 8>(cache, arrays, partial, stream);
  Grid grid;
  grid.x = int64_t{cache.sizes.batch} * cache.sizes.heads;
  grid.block = kDecodeThreads;
  launch(attention_join<Q, Cache>, grid, stream, cache, arrays, partial);
}
#endif

}  // namespace headroom::cuda
