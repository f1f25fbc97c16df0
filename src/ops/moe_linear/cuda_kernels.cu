// Device code of the experts' products for any size and architecture, with FFMA: tiles of 64 x 64, sixteen steps of the
// depth in shared memory, four by four sums per thread.
#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/moe_linear/cuda_expert.cuh"
#include "ops/moe_linear/cuda_kernels.h"

namespace headroom::cuda {

constexpr int kExpertTile = 64;
constexpr int kExpertSteps = 16;
constexpr int kExpertThreads = 256;
constexpr int kExpertStride = kExpertTile + 4;  // rows start in different banks, in groups of 16 bytes

// Elements (outer, inner) .. (outer, inner + 3).
template <typename T>
HR_DEVICE Pack<float, 4> load_four(const ExpertOperand<T>& operand, int outer, int inner) {
  Pack<float, 4> values = {{0, 0, 0, 0}};
  if (outer >= operand.outer || inner >= operand.inner) return values;
  const T* const from = operand.data + outer * operand.stride + inner;
  if (operand.stride % 4 == 0) {
    const Pack<T, 4> pack = *reinterpret_cast<const Pack<T, 4>*>(from);
    HR_UNROLL for (int i = 0; i < 4; ++i) values.at[i] = widen(pack.at[i]);
  } else {
    for (int i = 0; i < 4; ++i)
      if (inner + i < operand.inner) values.at[i] = widen(from[i]);
  }
  return values;
}

// Copies sixteen steps of the depth, starting at `from`, to the tile [16][68].
template <bool kAlongDepth, typename T>
HR_DEVICE void load_steps(float* tile, const ExpertOperand<T>& operand, int from) {
  const int thread = static_cast<int>(threadIdx.x);
  if (kAlongDepth) {
    const int row = thread / 4, step = thread % 4 * 4;
    const Pack<float, 4> values = load_four(operand, row, from + step);
    HR_UNROLL for (int i = 0; i < 4; ++i) tile[(step + i) * kExpertStride + row] = values.at[i];
  } else {
    const int step = thread / 16, row = thread % 16 * 4;
    *reinterpret_cast<Pack<float, 4>*>(tile + step * kExpertStride + row) = load_four(operand, from + step, row);
  }
}

template <ExpertProduct kProduct, typename T, typename R>
__global__ void __launch_bounds__(kExpertThreads) expert_product(ExpertArgs args) {
  HR_DYNAMIC_SHARED(float, shared);
  float* const other = shared + kExpertSteps * kExpertStride;
  const ExpertTile<T> tile = expert_tile<kProduct, T>(args, kExpertTile, kExpertTile);
  const int row = static_cast<int>(threadIdx.x) / 16 * 4, column = static_cast<int>(threadIdx.x) % 16 * 4;
  float sums[4][4] = {};
  for (int from = 0; from < tile.depth; from += kExpertSteps) {
    __syncthreads();
    load_steps<kAlongDepthA<kProduct>>(shared, tile.a, from);
    load_steps<kAlongDepthB<kProduct>>(other, tile.b, from);
    __syncthreads();
    HR_UNROLL for (int step = 0; step < kExpertSteps; ++step) {
      const Pack<float, 4> left = *reinterpret_cast<const Pack<float, 4>*>(shared + step * kExpertStride + row);
      const Pack<float, 4> right = *reinterpret_cast<const Pack<float, 4>*>(other + step * kExpertStride + column);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sums[i][j] += left.at[i] * right.at[j];
    }
  }
  R* const result = static_cast<R*>(args.result) + tile.to;
  const R* const addend = args.addend ? static_cast<const R*>(args.addend) + tile.to : nullptr;
  HR_UNROLL for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) {
    if (row + i >= tile.rows || column + j >= tile.cols) continue;
    const int64_t at = (row + i) * tile.stride + column + j;
    result[at] = narrow<R>(sums[i][j] + (addend ? widen(addend[at]) : 0.0f));
  }
}

// Outputs of a few rows: a warp reads a row of an expert's matrix once for up to eight rows of x.
constexpr int kFewRows = 8;

template <typename T, typename R, bool kWhole>
__global__ void __launch_bounds__(kExpertThreads) expert_few_rows(ExpertArgs args) {
  constexpr int N = kPack<T>;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warps = kExpertThreads / kWarp;
  const int across = (args.outs + warps - 1) / warps;
  const int at = static_cast<int>(blockIdx.x), tile = at / across;
  const ExpertRows rows = expert_rows(args, tile, kFewRows);
  const int out = at % across * warps + static_cast<int>(threadIdx.x) / kWarp;
  if (rows.expert < 0 || out >= args.outs) return;  // for all threads of the warp
  const int64_t first = rows.begin + (tile - rows.before) * kFewRows;
  const T* const w =
      static_cast<const T*>(args.other) + (static_cast<int64_t>(rows.expert) * args.outs + out) * args.ins;
  const T* const x = static_cast<const T*>(args.wide) + first * args.ins;
  const int count = at_most(rows.end - first, kFewRows);
  float sums[kFewRows] = {};
  for (int i = lane * N; i < args.ins; i += kWarp * N) {
    const Floats<N> weight = widen(load_row<kWhole, N>(w, i, args.ins));
    HR_UNROLL for (int row = 0; row < kFewRows; ++row) {
      if (row >= count) continue;
      const Floats<N> own = widen(load_row<kWhole, N>(x + static_cast<int64_t>(row) * args.ins, i, args.ins));
      HR_UNROLL for (int j = 0; j < N; ++j) sums[row] += own.at[j] * weight.at[j];
    }
  }
  R* const y = static_cast<R*>(args.result);
  const R* const addend = static_cast<const R*>(args.addend);
  HR_UNROLL for (int row = 0; row < kFewRows; ++row) {
    const float sum = reduce_warp(sums[row], Sum());
    const int64_t to = (first + row) * args.outs + out;
    if (lane == 0 && row < count) y[to] = narrow<R>(sum + (addend ? widen(addend[to]) : 0.0f));
  }
}

#ifdef __CUDACC_RTC__
#define HR_EXPERT(T, R)                                                                     \
  template __global__ void expert_product<ExpertProduct::forward, T, R>(ExpertArgs);        \
  template __global__ void expert_product<ExpertProduct::input_gradient, T, R>(ExpertArgs); \
  template __global__ void expert_few_rows<T, R, true>(ExpertArgs);                         \
  template __global__ void expert_few_rows<T, R, false>(ExpertArgs);
HR_EXPERT(float, float)
HR_EXPERT(Bf16, float)
HR_EXPERT(Bf16, Bf16)
HR_EXPERT(Half, float)
HR_EXPERT(Half, Half)
template __global__ void expert_product<ExpertProduct::weight_gradient, float, float>(ExpertArgs);
template __global__ void expert_product<ExpertProduct::weight_gradient, Bf16, float>(ExpertArgs);
template __global__ void expert_product<ExpertProduct::weight_gradient, Half, float>(ExpertArgs);
#else
namespace {

template <typename T, typename R>
void launch_product(const ExpertArgs& args, CudaStream stream) {
  Grid grid;
  grid.x = expert_blocks(args, kExpertTile, kExpertTile);
  grid.block = kExpertThreads;
  grid.shared_bytes = 2 * kExpertSteps * kExpertStride * static_cast<int64_t>(sizeof(float));
  if (args.product == ExpertProduct::weight_gradient)
    launch(expert_product<ExpertProduct::weight_gradient, T, float>, grid, stream, args);
  else if (args.product == ExpertProduct::forward)
    launch(expert_product<ExpertProduct::forward, T, R>, grid, stream, args);
  else
    launch(expert_product<ExpertProduct::input_gradient, T, R>, grid, stream, args);
}

template <typename T, typename R>
void launch_few(const ExpertArgs& args, CudaStream stream) {
  const int warps = kExpertThreads / kWarp;
  Grid grid;
  grid.block = kExpertThreads;
  grid.x = most_row_tiles(args, kFewRows) * ((args.outs + warps - 1) / warps);
  launch(args.ins % kPack<T> == 0 ? expert_few_rows<T, R, true> : expert_few_rows<T, R, false>, grid, stream, args);
}

}  // namespace

void launch_expert_product(const ExpertArgs& args, CudaStream stream) {
  with_product_types(args.type, args.result_type,
                     [&](auto type, auto result) { launch_product<decltype(type), decltype(result)>(args, stream); });
}

void launch_expert_few_rows(const ExpertArgs& args, CudaStream stream) {
  with_product_types(args.type, args.result_type,
                     [&](auto type, auto result) { launch_few<decltype(type), decltype(result)>(args, stream); });
}
#endif

}  // namespace headroom::cuda
