// Device code of Adafactor: squares over columns and rows, the norm of the update, the update.
#include "ops/adafactor/cuda_kernels.h"

#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"
#include "ops/cuda/updated_weight.cuh"

namespace headroom::cuda {

HR_DEVICE float square(const AdafactorArgs& a, float clip, int64_t i) {
  const float g = a.g[i] * clip;
  return fmaf(g, g, a.eps1);
}

// One thread per column.
__global__ void adafactor_cols(AdafactorArgs a) {
  const float clip = *a.clip, fresh = a.hyper[a.fresh_index];
  if (!usable_factor(clip)) return;
  for (int64_t at = first_index(); at < a.matrices * a.cols; at += index_stride()) {
    const int64_t matrix = at / a.cols, first = matrix * a.rows * a.cols + at % a.cols;
    float sum = 0;
    for (int64_t row = 0; row < a.rows; ++row) sum += square(a, clip, first + row * a.cols);
    const float mean = fmaf(1.0f - fresh, a.col_squares[at], fresh * (sum / static_cast<float>(a.rows)));
    a.col_squares[at] = mean;
    a.col_factors[at] = 1.0f / sqrtf(mean);
  }
}

// One block per row.
__global__ void adafactor_rows(AdafactorArgs a) {
  __shared__ float slots[kWarp];
  const float clip = *a.clip, fresh = a.hyper[a.fresh_index];
  if (!usable_factor(clip)) return;
  const int64_t row = blockIdx.x, first = row * a.cols;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < a.cols; i += blockDim.x) sum += square(a, clip, first + i);
  sum = reduce_block(sum, slots, 0.0f, Sum());
  if (threadIdx.x == 0)
    a.row_squares[row] = fmaf(1.0f - fresh, a.row_squares[row], fresh * (sum / static_cast<float>(a.cols)));
}

// One block per matrix.
__global__ void adafactor_row_factors(AdafactorArgs a) {
  __shared__ float slots[kWarp];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * a.rows;
  if (!a.factored) {
    for (int64_t i = threadIdx.x; i < a.rows; i += blockDim.x) a.row_factors[first + i] = 1.0f;
    return;
  }
  float sum = 0;
  for (int64_t i = threadIdx.x; i < a.rows; i += blockDim.x) sum += a.row_squares[first + i];
  const float mean = reduce_block(sum, slots, 0.0f, Sum()) / static_cast<float>(a.rows);
  for (int64_t i = threadIdx.x; i < a.rows; i += blockDim.x)
    a.row_factors[first + i] = sqrtf(mean / a.row_squares[first + i]);
}

// One block per row: the sums of squares of its update before clipping, and of its weights.
template <typename W>
__global__ void adafactor_sums(AdafactorArgs a) {
  __shared__ float slots[kWarp];
  const int64_t row = blockIdx.x, first = row * a.cols;
  const float* const factors = a.col_factors + row / a.rows * a.cols;
  const float factor = a.row_factors[row] * *a.clip;
  float updates = 0, weights = 0;
  for (int64_t i = threadIdx.x; i < a.cols; i += blockDim.x) {
    const float u = factors[i] * factor * a.g[first + i];
    const float w = a.scales ? widen(static_cast<const W*>(a.w)[first + i]) : 0.0f;
    updates = fmaf(u, u, updates);
    weights = fmaf(w, w, weights);
  }
  updates = reduce_block(updates, slots, 0.0f, Sum());
  __syncthreads();
  weights = reduce_block(weights, slots, 0.0f, Sum());
  if (threadIdx.x != 0) return;
  a.row_sums[2 * row] = updates;
  a.row_sums[2 * row + 1] = weights;
}

// One block.
__global__ void adafactor_whole(AdafactorArgs a) {
  __shared__ float slots[kWarp];
  const int64_t rows = a.matrices * a.rows;
  float updates = 0, weights = 0;
  for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
    updates += a.row_sums[2 * i];
    weights += a.row_sums[2 * i + 1];
  }
  updates = reduce_block(updates, slots, 0.0f, Sum());
  __syncthreads();
  weights = reduce_block(weights, slots, 0.0f, Sum());
  if (threadIdx.x != 0) return;
  const float count = static_cast<float>(rows) * static_cast<float>(a.cols);
  float rate = a.hyper[a.rate_index];
  if (a.scales) rate *= fmaxf(a.least_scale, sqrtf(weights / count));
  a.whole[0] = rate;
  a.whole[1] = rate / fmaxf(1.0f, sqrtf(updates / count) / a.most_update);
}

template <typename W>
__global__ void adafactor_move(AdafactorArgs a) {
  const float clip = *a.clip, rate = a.whole[0], scale = a.whole[1];
  if (!usable_factor(clip)) return refresh_copy(static_cast<const W*>(a.w), a.copy, 0, a.matrices * a.rows * a.cols);
  const float decay = a.decay ? a.hyper[kWeightDecay] * rate : 0.0f;
  BlockKeys keys(step_key(a.hyper, a.tensor));
  for_runs<1>(a.matrices * a.rows * a.cols, [&](auto run, int64_t i) {
    const int64_t row = i / a.cols, col = row / a.rows * a.cols + i % a.cols;
    float u = a.col_factors[col] * (a.row_factors[row] * clip * scale) * a.g[i];
    if (a.moment) u = a.moment[i] = fmaf(a.beta1, a.moment[i], (1.0f - a.beta1) * u);
    Floats<1> w = load_floats<1>(static_cast<W*>(a.w) + i);
    w.at[0] = fmaf(-decay, w.at[0], w.at[0]) - u;
    store_weight(static_cast<W*>(a.w), a.copy, keys, i, w);
  });
}

#ifdef __CUDACC_RTC__
template __global__ void adafactor_sums<float>(AdafactorArgs);
template __global__ void adafactor_sums<Bf16>(AdafactorArgs);
template __global__ void adafactor_sums<Half>(AdafactorArgs);
template __global__ void adafactor_move<float>(AdafactorArgs);
template __global__ void adafactor_move<Bf16>(AdafactorArgs);
template __global__ void adafactor_move<Half>(AdafactorArgs);
#else
void launch_adafactor(FloatType weight, const AdafactorArgs& args, int multiprocessors, CudaStream stream) {
  const auto blocks = [](int64_t count) {
    Grid grid;
    grid.x = count;
    grid.block = 256;
    return grid;
  };
  const int64_t rows = args.matrices * args.rows;
  launch(adafactor_cols, grid_over(args.matrices * args.cols, multiprocessors), stream, args);
  if (args.factored) launch(adafactor_rows, blocks(rows), stream, args);
  launch(adafactor_row_factors, blocks(args.matrices), stream, args);
  with_float_type(weight, [&](auto zero) {
    using W = decltype(zero);
    launch(adafactor_sums<W>, blocks(rows), stream, args);
    launch(adafactor_whole, blocks(1), stream, args);
    launch(adafactor_move<W>, grid_over(rows * args.cols, multiprocessors), stream, args);
  });
}
#endif

}  // namespace headroom::cuda
