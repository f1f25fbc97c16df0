// Device code of the learned position embedding.
#include "ops/position_embedding/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"

namespace headroom::cuda {

constexpr int kPositionRun = 8;

template <typename X, typename T, bool kWhole>
__global__ void position_embedding(PositionArgs a) {
  constexpr int N = kPositionRun;
  const int64_t runs = (a.width + N - 1) / N;
  for (int64_t item = first_index(); item < a.tokens * runs; item += index_stride()) {
    const int64_t token = quotient(item, runs), i = (item - token * runs) * N;
    const int64_t sequence = quotient(token, a.seq);
    int64_t row = a.first + token - sequence * a.seq;
    if (a.offset) row += a.offset[sequence * a.offset_step];
    if (a.starts) row -= a.starts[token];
    const T* const table = static_cast<const T*>(a.table) + clamp_index(row, a.table_rows) * a.width;
    const Raw<X, N> raw = load_row<kWhole, N>(static_cast<const X*>(a.x) + token * a.width, i, a.width);
    const Floats<N> added = widen(load_row<kWhole, N>(table, i, a.width));
    Floats<N> y = widen(raw);
    HR_UNROLL for (int j = 0; j < N; ++j) y.at[j] += added.at[j];
    store_row<kWhole>(static_cast<X*>(a.y) + token * a.width, i, a.width, y);
  }
}

// Each thread adds 8 columns of a position over the batch.
template <typename D, bool kWhole>
__global__ void position_embedding_grad(PositionGradArgs a) {
  constexpr int N = kPositionRun;
  const int64_t runs = (a.width + N - 1) / N, rows = a.seq < a.positions ? a.seq : a.positions;
  for (int64_t item = first_index(); item < rows * runs; item += index_stride()) {
    const int64_t row = quotient(item, runs), i = (item - row * runs) * N;
    Floats<N> sum = widen(load_row<kWhole, N>(a.acc + row * a.width, i, a.width));
    for (int64_t b = 0; b < a.batch; ++b) {
      const D* const dy = static_cast<const D*>(a.dy) + (b * a.seq + row) * a.width;
      const Floats<N> x = widen(load_row<kWhole, N>(dy, i, a.width));
      HR_UNROLL for (int j = 0; j < N; ++j) sum.at[j] += x.at[j];
    }
    store_row<kWhole>(a.acc + row * a.width, i, a.width, sum);
  }
}

// With segments: one warp per position and 256 columns. It looks at 32 tokens at a time and adds those of its position,
// which cannot come before it in their sequence.
template <typename D, bool kWhole>
__global__ void position_embedding_grad_segments(PositionGradArgs a) {
  constexpr int N = kPositionRun;
  const int lane = static_cast<int>(threadIdx.x);
  const int64_t position = blockIdx.x, i = (int64_t{blockIdx.y} * kWarp + lane) * N;
  Floats<N> sum = widen(load_row<kWhole, N>(a.acc + position * a.width, i, a.width));
  for (int64_t b = 0; b < a.batch; ++b) {
    const int32_t* const starts = a.starts + b * a.seq;
    for (int64_t base = position; base < a.seq; base += kWarp) {
      const int64_t at = base + lane;
      const bool here = at < a.seq && at - starts[at] == position;
      const uint32_t found = reduce_warp(here ? uint32_t{1} << lane : uint32_t{0}, Sum());
      if (found == 0) continue;
      for (int k = 0; k < kWarp; ++k) {
        if ((found >> k & 1u) == 0) continue;
        const D* const dy = static_cast<const D*>(a.dy) + (b * a.seq + base + k) * a.width;
        const Floats<N> x = widen(load_row<kWhole, N>(dy, i, a.width));
        HR_UNROLL for (int j = 0; j < N; ++j) sum.at[j] += x.at[j];
      }
    }
  }
  store_row<kWhole>(a.acc + position * a.width, i, a.width, sum);
}

#ifdef __CUDACC_RTC__
#define HR_INSTANTIATE(X, T)                                             \
  template __global__ void position_embedding<X, T, true>(PositionArgs); \
  template __global__ void position_embedding<X, T, false>(PositionArgs);
HR_INSTANTIATE(float, float)
HR_INSTANTIATE(Bf16, float)
HR_INSTANTIATE(Half, float)
HR_INSTANTIATE(Bf16, Bf16)
HR_INSTANTIATE(Half, Half)
#define HR_INSTANTIATE_GRAD(D, W)                                           \
  template __global__ void position_embedding_grad<D, W>(PositionGradArgs); \
  template __global__ void position_embedding_grad_segments<D, W>(PositionGradArgs);
HR_INSTANTIATE_GRAD(float, true)
HR_INSTANTIATE_GRAD(float, false)
HR_INSTANTIATE_GRAD(Bf16, true)
HR_INSTANTIATE_GRAD(Half, true)
HR_INSTANTIATE_GRAD(Bf16, false)
HR_INSTANTIATE_GRAD(Half, false)
#else
namespace {

template <typename X, typename T>
void launch_forward(const PositionArgs& a, int multiprocessors, CudaStream stream) {
  const int64_t runs = (a.width + kPositionRun - 1) / kPositionRun;
  launch(a.width % kPositionRun == 0 ? position_embedding<X, T, true> : position_embedding<X, T, false>,
         grid_over(a.tokens * runs, multiprocessors), stream, a);
}

template <typename D, bool kWhole>
void launch_grad(const PositionGradArgs& a, bool segments, int multiprocessors, CudaStream stream) {
  const int64_t runs = (a.width + kPositionRun - 1) / kPositionRun, rows = a.seq < a.positions ? a.seq : a.positions;
  Grid grid = grid_over(rows * runs, multiprocessors);
  if (rows < 1) return;
  if (!segments) return launch(position_embedding_grad<D, kWhole>, grid, stream, a);
  grid.x = rows;
  grid.y = (runs + kWarp - 1) / kWarp;
  grid.block = kWarp;
  launch(position_embedding_grad_segments<D, kWhole>, grid, stream, a);
}

}  // namespace

void launch_position_embedding(FloatType x, FloatType table, const PositionArgs& args, int multiprocessors,
                               CudaStream stream) {
  with_float_type(x, [&](auto zero) {
    using X = decltype(zero);
    table == x ? launch_forward<X, X>(args, multiprocessors, stream)
               : launch_forward<X, float>(args, multiprocessors, stream);
  });
}

void launch_position_embedding_grad(FloatType dy, const PositionGradArgs& args, bool segments, int multiprocessors,
                                    CudaStream stream) {
  with_float_type(dy, [&](auto zero) {
    using D = decltype(zero);
    args.width % kPositionRun == 0 ? launch_grad<D, true>(args, segments, multiprocessors, stream)
                                   : launch_grad<D, false>(args, segments, multiprocessors, stream);
  });
}
#endif

}  // namespace headroom::cuda
