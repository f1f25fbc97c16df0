// Device code of the embedding's gradient: the tokens are sorted by row, then the gradients of each row's tokens are
// added in order. There are no float atomics, so the bits are always the same.
#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"
#include "ops/embedding/cuda_kernels.h"

namespace headroom::cuda {

constexpr int kRankThreads = 128;
constexpr int kGradRun = 8;                     // columns per thread
constexpr int kGradColumns = kGradRun * kWarp;  // columns per warp
constexpr int kLongRow = kWarp;                 // tokens from which a block, not a warp, adds a row
constexpr int kShortWarps = 4, kLongWarps = 8;

// A token's position is the number of tokens that come before it: those of a smaller row, and those of the same row
// with a smaller index. This takes tokens^2 comparisons; 16 Ki tokens take a few hundredths of a millisecond.
__global__ void order_tokens(EmbeddingGradArgs a) {
  __shared__ int32_t tile[kRankThreads];
  const int64_t own = first_index();
  const int32_t row = static_cast<int32_t>(clamp_index(a.ids[own < a.tokens ? own : 0], a.rows));
  int place[4] = {0, 0, 0, 0};
  for (int64_t base = 0; base < a.tokens; base += kRankThreads) {
    const int64_t other = base + threadIdx.x;
    __syncthreads();
    tile[threadIdx.x] = other < a.tokens ? static_cast<int32_t>(clamp_index(a.ids[other], a.rows)) : 0x7fffffff;
    __syncthreads();
    // In a tile before the token's own, equal rows count too; in its own tile, only those before the token.
    const int64_t before = own - base;
    const int32_t limit = before >= kRankThreads ? row + 1 : row;
    HR_UNROLL for (int j = 0; j < kRankThreads; ++j) place[j % 4] += tile[j] < limit;
    if (before >= 0 && before < kRankThreads)
      for (int j = 0; j < before; ++j) place[0] += tile[j] == row;
  }
  if (own >= a.tokens) return;
  const int at = (place[0] + place[1]) + (place[2] + place[3]);
  a.row[at] = row;
  a.place[at] = static_cast<int32_t>(own);
}

// Adds dy of `count` tokens, the first at position `begin` of the order, to `sum`, for the columns starting at i.
template <typename D, bool kWhole>
HR_DEVICE void add_tokens(const EmbeddingGradArgs& a, int64_t begin, int64_t count, int64_t i, Floats<kGradRun>& sum) {
  constexpr int kAhead = 4;
  int64_t k = 0;
  for (; k + kAhead <= count; k += kAhead) {
    Raw<D, kGradRun> raw[kAhead];
    HR_UNROLL for (int j = 0; j < kAhead; ++j) {
      const D* const dy = static_cast<const D*>(a.dy) + a.place[begin + k + j] * a.width;
      raw[j] = load_row<kWhole, kGradRun>(dy, i, a.width);
    }
    HR_UNROLL for (int j = 0; j < kAhead; ++j) {
      const Floats<kGradRun> x = widen(raw[j]);
      HR_UNROLL for (int c = 0; c < kGradRun; ++c) sum.at[c] += x.at[c];
    }
  }
  for (; k < count; ++k) {
    const D* const dy = static_cast<const D*>(a.dy) + a.place[begin + k] * a.width;
    const Floats<kGradRun> x = widen(load_row<kWhole, kGradRun>(dy, i, a.width));
    HR_UNROLL for (int c = 0; c < kGradRun; ++c) sum.at[c] += x.at[c];
  }
}

template <bool kWhole>
HR_DEVICE void add_to_row(const EmbeddingGradArgs& a, int64_t row, int64_t i, Floats<kGradRun> sum) {
  float* const acc = a.acc + row * a.width;
  const Floats<kGradRun> before = widen(load_row<kWhole, kGradRun>(acc, i, a.width));
  HR_UNROLL for (int c = 0; c < kGradRun; ++c) sum.at[c] += before.at[c];
  store_row<kWhole>(acc, i, a.width, sum);
}

// One warp per position of the order and 256 columns. A warp adds a row if it is at the row's first token and the row
// has fewer than 32.
template <typename D, bool kWhole>
__global__ void add_short_rows(EmbeddingGradArgs a) {
  const int64_t at = int64_t{blockIdx.x} * kShortWarps + threadIdx.x / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t i = int64_t{blockIdx.y} * kGradColumns + lane * kGradRun;
  const int32_t row = at < a.tokens ? a.row[at] : -1;
  const bool first = at < a.tokens && (at == 0 || a.row[at - 1] != row);
  const bool same = at + lane < a.tokens && a.row[at + lane] == row;
  const int other = reduce_warp(same ? 0 : kWarp - lane, Max());  // first lane beyond the row, counted from the end
  const int count = kWarp - other;
  if (!first || count >= kLongRow || row == a.padding) return;
  Floats<kGradRun> sum = {};
  add_tokens<D, kWhole>(a, at, count, i, sum);
  add_to_row<kWhole>(a, row, i, sum);
}

// The first position of the order whose row is at least `row`.
HR_DEVICE int64_t first_place(const EmbeddingGradArgs& a, int64_t row) {
  int64_t low = 0, high = a.tokens;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (a.row[middle] < row)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// A row with 32 tokens or more includes a position that is a multiple of 32. The block of the first such position adds
// the row, with consecutive parts for its warps.
template <typename D, bool kWhole>
__global__ void add_long_rows(EmbeddingGradArgs a) {
  __shared__ float sums[kLongWarps][kGradColumns];
  const int64_t at = int64_t{blockIdx.x} * kLongRow;
  const int32_t row = a.row[at];
  if (row == a.padding || (at > 0 && a.row[at - kLongRow] == row)) return;
  const int64_t begin = first_place(a, row), end = first_place(a, int64_t{row} + 1);
  if (end - begin < kLongRow) return;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t i = int64_t{blockIdx.y} * kGradColumns + lane * kGradRun;
  const int64_t part = (end - begin + kLongWarps - 1) / kLongWarps, from = begin + warp * part;
  const int64_t to = from + part < end ? from + part : end;
  Floats<kGradRun> sum = {};
  add_tokens<D, kWhole>(a, from, to - from, i, sum);
  HR_UNROLL for (int c = 0; c < kGradRun; ++c) sums[warp][c * kWarp + lane] = sum.at[c];
  __syncthreads();
  if (warp > 0) return;
  for (int w = 1; w < kLongWarps; ++w)
    HR_UNROLL for (int c = 0; c < kGradRun; ++c) sum.at[c] += sums[w][c * kWarp + lane];
  add_to_row<kWhole>(a, row, i, sum);
}

#ifdef __CUDACC_RTC__
#define HR_INSTANTIATE(D, W)                                        \
  template __global__ void add_short_rows<D, W>(EmbeddingGradArgs); \
  template __global__ void add_long_rows<D, W>(EmbeddingGradArgs);
HR_INSTANTIATE(float, true)
HR_INSTANTIATE(float, false)
HR_INSTANTIATE(Bf16, true)
HR_INSTANTIATE(Half, true)
HR_INSTANTIATE(Bf16, false)
HR_INSTANTIATE(Half, false)
#else
namespace {

template <typename D, bool kWhole>
void launch_sums(const EmbeddingGradArgs& a, CudaStream stream) {
  Grid grid;
  grid.y = (a.width + kGradColumns - 1) / kGradColumns;
  grid.x = (a.tokens + kShortWarps - 1) / kShortWarps;
  grid.block = kShortWarps * kWarp;
  launch(add_short_rows<D, kWhole>, grid, stream, a);
  grid.x = a.tokens / kLongRow + (a.tokens % kLongRow != 0 ? 1 : 0);
  grid.block = kLongWarps * kWarp;
  launch(add_long_rows<D, kWhole>, grid, stream, a);
}

}  // namespace

void launch_embedding_grad(FloatType dy, const EmbeddingGradArgs& args, CudaStream stream) {
  Grid grid;
  grid.x = (args.tokens + kRankThreads - 1) / kRankThreads;
  grid.block = kRankThreads;
  launch(order_tokens, grid, stream, args);
  with_float_type(dy, [&](auto zero) {
    using D = decltype(zero);
    args.width % kGradRun == 0 ? launch_sums<D, true>(args, stream) : launch_sums<D, false>(args, stream);
  });
}
#endif

}  // namespace headroom::cuda
