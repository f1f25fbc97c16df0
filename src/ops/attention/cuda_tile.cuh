// Products of tiles in shared memory with FFMA, for any head size and architecture.
//
// A block has 16 x 16 threads. Thread (ty, tx) owns rows 4 ty .. 4 ty + 3 of a tile of sums and four of its columns, or
// four of each 64: 16 multiplications for two 16-byte reads of shared memory, one of which is a broadcast.
#pragma once

#include "ops/cuda/device_language.cuh"

// Before a loop: do not unroll, or unroll by two, so that the values of all iterations do not occupy registers.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define HR_ROLLED _Pragma("unroll 1")
#define HR_UNROLL_TWO _Pragma("unroll 2")
#else
#define HR_ROLLED
#define HR_UNROLL_TWO
#endif

namespace headroom::cuda {

constexpr int kTile = 64;   // queries or keys per tile
constexpr int kSteps = 32;  // steps of a product that are in shared memory at a time
constexpr int kTileThreads = 256;
constexpr int kStageFloats = 2 * kSteps * kTile;

// Index of (step, row) in a tile [steps][64]. Groups of four rows are permuted so that neither the transposed stores
// nor the 16-byte reads have bank conflicts.
HR_DEVICE int tile_at(int step, int row) { return step * kTile + (row ^ (step / 4 % 8 * 4)); }

HR_DEVICE int tile_row() { return static_cast<int>(threadIdx.x) / 16 * 4; }
HR_DEVICE int tile_column() { return static_cast<int>(threadIdx.x) % 16 * 4; }

// Rows of one head in memory: row r is at data + r * stride; rows from `count` on read as zero.
template <typename T>
struct HeadRows {
  const T* data;
  int stride;  // 64 rows fit in an int index
  int count;
  int dim;

  // Elements [column, column + 4).
  HR_DEVICE Pack<float, 4> at(int row, int column) const {
    Pack<float, 4> values = {{0, 0, 0, 0}};
    if (row >= count || column >= dim) return values;
    const T* const from = data + row * stride + column;
    if (dim % 4 == 0) {
      const Pack<T, 4> pack = *reinterpret_cast<const Pack<T, 4>*>(from);
      HR_UNROLL
      for (int i = 0; i < 4; ++i) values.at[i] = widen(pack.at[i]);
    } else {
      HR_UNROLL
      for (int i = 0; i < 4; ++i)
        if (column + i < dim) values.at[i] = widen(from[i]);
    }
    return values;
  }
  HR_DEVICE HeadRows from(int row) const {
    return {data + static_cast<int64_t>(row) * stride, stride, count - row, dim};
  }
};

// Row 0 of a head in a [batch, rows, heads * dim] tensor.
template <typename T>
HR_DEVICE HeadRows<T> head_rows(const void* data, int row, int rows, int heads, int head, int dim) {
  const int stride = heads * dim;
  return {static_cast<const T*>(data) + static_cast<int64_t>(row) * rows * stride + head * dim, stride, rows, dim};
}

template <typename T>
HR_DEVICE void store_four(T* to, int column, int dim, const float* values) {
  if (dim % 4 == 0) {
    if (column >= dim) return;
    Pack<T, 4> pack;
    HR_UNROLL
    for (int i = 0; i < 4; ++i) pack.at[i] = narrow<T>(values[i]);
    *reinterpret_cast<Pack<T, 4>*>(to + column) = pack;
  } else {
    HR_UNROLL
    for (int i = 0; i < 4; ++i)
      if (column + i < dim) to[column + i] = narrow<T>(values[i]);
  }
}

// Copies columns [column, column + 32) of 64 rows to the tile [32][64].
template <typename T>
HR_DEVICE void load_transposed(float* tile, const HeadRows<T>& rows, int column) {
  HR_UNROLL
  for (int round = 0; round < kTile * kSteps / 4 / kTileThreads; ++round) {
    const int item = round * kTileThreads + static_cast<int>(threadIdx.x), row = item / 8, step = item % 8 * 4;
    const Pack<float, 4> values = rows.at(row, column + step);
    HR_UNROLL
    for (int i = 0; i < 4; ++i) tile[tile_at(step + i, row)] = values.at[i];
  }
}

// Copies columns [column, column + 64 C) of 32 rows to [32][64 C].
template <int C, typename T>
HR_DEVICE void load_plain(float* tile, const HeadRows<T>& rows, int column) {
  HR_UNROLL_TWO
  for (int round = 0; round < kSteps * 16 * C / kTileThreads; ++round) {
    const int item = round * kTileThreads + static_cast<int>(threadIdx.x), row = item / (16 * C);
    const int at = item % (16 * C) * 4;
    *reinterpret_cast<Pack<float, 4>*>(tile + row * 64 * C + at) = rows.at(row, column + at);
  }
}

// sums[i][j] = product of row tile_row() + i of `a` and row tile_column() + j of `b`, over the whole head. `stage` is
// shared memory for kStageFloats; the function begins with a barrier, so it may still be in use before.
template <typename A, typename B>
HR_DEVICE void multiply_rows(float (&sums)[4][4], const HeadRows<A>& a, const HeadRows<B>& b, float* stage) {
  float* const other = stage + kSteps * kTile;
  const int row = tile_row(), column = tile_column();
  HR_UNROLL
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  for (int from = 0; from < a.dim; from += kSteps) {
    __syncthreads();
    load_transposed(stage, a, from);
    load_transposed(other, b, from);
    __syncthreads();
    HR_ROLLED
    for (int four = 0; four < kSteps; four += 4) {
      const float* const lefts = stage + tile_at(four, row);
      const float* const rights = other + tile_at(four, column);
      HR_UNROLL
      for (int step = 0; step < 4; ++step) {
        const Pack<float, 4> left = *reinterpret_cast<const Pack<float, 4>*>(lefts + step * kTile);
        const Pack<float, 4> right = *reinterpret_cast<const Pack<float, 4>*>(rights + step * kTile);
        HR_UNROLL
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 4; ++j) sums[i][j] += left.at[i] * right.at[j];
      }
    }
  }
}

// Stores column j of this thread's 4 x 4 block as weights for add_weighted_rows, where columns are steps.
HR_DEVICE void store_weights(float* weights, int j, const Pack<float, 4>& column) {
  *reinterpret_cast<Pack<float, 4>*>(weights + tile_at(tile_column() + j, tile_row())) = column;
}
HR_DEVICE void store_weights(float* weights, const float (&values)[4][4]) {
  HR_UNROLL
  for (int j = 0; j < 4; ++j) store_weights(weights, j, {{values[0][j], values[1][j], values[2][j], values[3][j]}});
}

// sums[i][4 c + j] += the sum over 64 steps of weights(step, tile_row() + i) * rows(step, column + 64 c + tile_column()
// + j). Begins with a barrier, so `weights` may have been stored just before.
template <int C, typename T>
HR_DEVICE void add_weighted_rows(float (&sums)[4][4 * C], const float* weights, const HeadRows<T>& rows, int column,
                                 float* stage) {
  const int row = tile_row(), own = tile_column();
  for (int first = 0; first < kTile; first += kSteps) {
    __syncthreads();
    load_plain<C>(stage, rows.from(first), column);
    __syncthreads();
    HR_ROLLED
    for (int four = 0; four < kSteps; four += 4) {
      const float* const lefts = weights + tile_at(first + four, row);
      const float* const rights = stage + four * C * 64 + own;
      HR_UNROLL
      for (int step = 0; step < 4; ++step) {
        const Pack<float, 4> left = *reinterpret_cast<const Pack<float, 4>*>(lefts + step * kTile);
        HR_UNROLL
        for (int c = 0; c < C; ++c) {
          const Pack<float, 4> right = *reinterpret_cast<const Pack<float, 4>*>(rights + (step * C + c) * 64);
          HR_UNROLL
          for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) sums[i][4 * c + j] += left.at[i] * right.at[j];
        }
      }
    }
  }
}

// Stores rows tile_row() .. tile_row() + 3 of sums * factor to rows [first, rows) of a head.
template <int C, typename T>
HR_DEVICE void store_rows(void* data, int row, int rows, int heads, int head, int dim, int first, int column,
                          const float (&sums)[4][4 * C], const float (&factors)[4]) {
  const HeadRows<T> to = head_rows<T>(data, row, rows, heads, head, dim);
  HR_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int at = first + tile_row() + i;
    if (at >= rows) continue;
    HR_UNROLL
    for (int c = 0; c < C; ++c) {
      float values[4];
      HR_UNROLL
      for (int j = 0; j < 4; ++j) values[j] = sums[i][4 * c + j] * factors[i];
      store_four(const_cast<T*>(to.from(at).data), column + 64 * c + tile_column(), dim, values);
    }
  }
}

}  // namespace headroom::cuda
