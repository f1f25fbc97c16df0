// Products of tiles on tensor cores, for heads of D = 64, 96 or 128 in bf16. A block has four warps. Each one owns
// sixteen rows of a tile, or M times sixteen, with all columns, so that the result of a product stays in the warp's
// registers as the left operand of the next one.
//
// Rows in shared memory are D + 8 elements apart: eight consecutive rows then start in different banks.
#pragma once

#include "ops/attention/cuda_visible.cuh"
#include "ops/cuda/mma.cuh"

namespace headroom::cuda {

constexpr int kMmaWarps = 4;
constexpr int kMmaThreads = kMmaWarps * kWarp;
template <int D>
constexpr int kMmaStride = D + 8;

template <int D>
struct MmaHead {
  static constexpr int value = D;
};
// Calls body(MmaHead<dim>()); dim is 64, 96 or 128.
template <typename Body>
void with_mma_head(int64_t dim, const Body& body) {
  if (dim == 64)
    body(MmaHead<64>());
  else if (dim == 96)
    body(MmaHead<96>());
  else
    body(MmaHead<128>());
}

// Rows of one head in memory: row r is at data + r * stride; rows from `count` on read as zero.
struct MmaRows {
  const Bf16* data;
  int stride;  // 128 rows fit in an int index
  int count;
};
// Row `first` of a head in a [batch, rows, heads * D] tensor.
template <int D>
HR_DEVICE MmaRows mma_rows(const void* data, int row, int rows, int heads, int head, int first = 0) {
  const int stride = heads * D;
  return {static_cast<const Bf16*>(data) + (static_cast<int64_t>(row) * rows + first) * stride + head * D, stride,
          rows - first};
}
HR_DEVICE MmaRows rows_from(const MmaRows& rows, int first) {
  return {rows.data + static_cast<int64_t>(first) * rows.stride, rows.stride, rows.count - first};
}

// Scores from products, and the factor that converts them to base 2: exp(score) = 2^(factor * score).
template <bool kCapped>
class MmaScores {
 public:
  HR_DEVICE explicit MmaScores(const AttentionSizes& sizes)
      : factor_(kCapped ? kLog2E : sizes.scale * kLog2E),
        cap_(sizes.softcap),
        inner_(kCapped ? 2 * kLog2E * sizes.scale / sizes.softcap : 0) {}
  HR_DEVICE float factor() const { return factor_; }
  // tanh(x) = 1 - 2 / (exp(2x) + 1), accurate to about 1e-7; `slope` is its derivative with respect to the scaled
  // product.
  HR_DEVICE float of(float product, float& slope) const {
    slope = 1;
    if (!kCapped) return product;
    const float t = 1.0f - 2.0f / (power_of_two(inner_ * product) + 1.0f);
    slope = 1.0f - t * t;
    return cap_ * t;
  }
  HR_DEVICE float of(float product) const {
    float slope;
    return of(product, slope);
  }

 private:
  float factor_, cap_, inner_;
};

// Starts to copy rows [0, R) to the tile [R][D + 8]: 128 bytes of a row per access, or 64 for heads of 96.
template <int D, int R>
HR_DEVICE void begin_rows(Bf16* tile, const MmaRows& rows) {
  constexpr int kLanes = D % 64 == 0 ? 8 : 4, kRows = kMmaThreads / kLanes;
  static_assert(R % kRows == 0);
  const int thread = static_cast<int>(threadIdx.x), first = thread / kLanes, column = thread % kLanes * 8;
  const Bf16* from = rows.data + first * rows.stride + column;
  Bf16* to = tile + first * kMmaStride<D> + column;
  HR_UNROLL
  for (int row = 0; row < R; row += kRows) {
    const bool there = first + row < rows.count;
    HR_UNROLL
    for (int at = 0; at < D; at += 8 * kLanes)
      begin_copy(to + row * kMmaStride<D> + at, (there ? from : rows.data) + at, there);
    from += kRows * rows.stride;
  }
}

// sums[m][n] = product of the warp's rows 16 m .. 16 m + 15 of `a` (which points at its first row) and rows 8 n .. 8 n
// + 7 of `b`, over the head.
template <int D, int M, int N>
HR_DEVICE void mma_rows_product(float (&sums)[M][N][4], const Bf16* a, const Bf16* b) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, matrix = lane / 8;
  a += (lane % 8 + matrix % 2 * 8) * kMmaStride<D> + matrix / 2 * 8;
  b += (lane % 8 + matrix / 2 * 8) * kMmaStride<D> + matrix % 2 * 8;
  HR_UNROLL
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n)
      for (int i = 0; i < 4; ++i) sums[m][n][i] = 0;
  HR_UNROLL
  for (int step = 0; step < D; step += 16) {
    uint32_t left[M][4];
    HR_UNROLL
    for (int m = 0; m < M; ++m) load_matrices(left[m], a + 16 * m * kMmaStride<D> + step);
    HR_UNROLL
    for (int n = 0; n < N; n += 2) {
      uint32_t right[4];
      load_matrices(right, b + 8 * n * kMmaStride<D> + step);
      HR_UNROLL
      for (int m = 0; m < M; ++m) {
        mma_m16n8k16(sums[m][n], left[m], right[0], right[1]);
        mma_m16n8k16(sums[m][n + 1], left[m], right[2], right[3]);
      }
    }
  }
}

// Columns 16 j .. 16 j + 15 of a product as the left operand of the next one.
template <int N>
HR_DEVICE void as_left(uint32_t (&left)[4], const float (&sums)[N][4], int j) {
  left[0] = narrow_pair<Bf16>(sums[2 * j][0], sums[2 * j][1]);
  left[1] = narrow_pair<Bf16>(sums[2 * j][2], sums[2 * j][3]);
  left[2] = narrow_pair<Bf16>(sums[2 * j + 1][0], sums[2 * j + 1][1]);
  left[3] = narrow_pair<Bf16>(sums[2 * j + 1][2], sums[2 * j + 1][3]);
}

// sums[m][d] += weights[m] times columns 8 d .. 8 d + 7 of the 8 N rows of `b`.
template <int D, int M, int N>
HR_DEVICE void mma_weighted_rows(float (&sums)[M][D / 8][4], const float (&weights)[M][N][4], const Bf16* b) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, matrix = lane / 8;
  b += (lane % 8 + matrix % 2 * 8) * kMmaStride<D> + matrix / 2 * 8;
  HR_UNROLL
  for (int j = 0; j < N / 2; ++j) {
    uint32_t left[M][4];
    HR_UNROLL
    for (int m = 0; m < M; ++m) as_left(left[m], weights[m], j);
    HR_UNROLL
    for (int d = 0; d < D / 8; d += 2) {
      uint32_t right[4];
      load_matrices_transposed(right, b + 16 * j * kMmaStride<D> + 8 * d);
      HR_UNROLL
      for (int m = 0; m < M; ++m) {
        mma_m16n8k16(sums[m][d], left[m], right[0], right[1]);
        mma_m16n8k16(sums[m][d + 1], left[m], right[2], right[3]);
      }
    }
  }
}

// Row and first column of this thread in its warp's 16 x 8 block: sums[0] and [1] are there, [2] and [3] eight rows
// below.
HR_DEVICE int mma_row() { return static_cast<int>(threadIdx.x) % kWarp / 4; }
HR_DEVICE int mma_column() { return static_cast<int>(threadIdx.x) % 4 * 2; }

// Stores the warp's sixteen rows of sums * factors ([0]: for the upper eight) to rows `first` and following of a head
// of a [batch, rows, heads * D] tensor.
template <int D>
HR_DEVICE void store_mma_rows(void* data, int row, int rows, int heads, int head, int first,
                              const float (&sums)[D / 8][4], float upper, float lower) {
  HR_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int at = first + mma_row() + 8 * half;
    if (at >= rows) continue;
    const float factor = half == 0 ? upper : lower;
    Bf16* const to = static_cast<Bf16*>(data) + ((static_cast<int64_t>(row) * rows + at) * heads + head) * D;
    HR_UNROLL
    for (int d = 0; d < D / 8; ++d)
      *reinterpret_cast<uint32_t*>(to + 8 * d + mma_column()) =
          narrow_pair<Bf16>(sums[d][2 * half] * factor, sums[d][2 * half + 1] * factor);
  }
}

}  // namespace headroom::cuda
