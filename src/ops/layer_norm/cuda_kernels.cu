// Device code of the layer norm and its gradient.
#include "ops/layer_norm/cuda_kernels.h"

#include "ops/cuda/column_sums.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/rows.cuh"

namespace headroom::cuda {

constexpr int kN = kRowRun, kHeld = kRowRuns;

// Adds to the sum of (x - mean)^2 over the columns that exist.
template <bool kWhole>
HR_DEVICE void add_deviations(const Floats<kN>& x, float mean, int64_t i, int64_t width, float& sum) {
  HR_UNROLL for (int j = 0; j < kN; ++j) {
    const float from_mean = x.at[j] - mean;
    if (kWhole ? i < width : i + j < width) sum += from_mean * from_mean;
  }
}

// A group of threads keeps a row in registers for both sums and the result, so that x is read once.
template <typename X, typename Y, bool kWhole>
__global__ void __launch_bounds__(kMostRowLanes) layer_norm(LayerNormArgs a) {
  __shared__ float slots[2][kWarp];
  const RowGroup group = row_group(a.lanes);
  const int64_t own = int64_t{blockIdx.x} * group.count + group.index, row = clamp_index(own, a.rows);
  const X* const x = static_cast<const X*>(a.x) + row * a.width;
  const int64_t first = group.lane * kN, stride = int64_t{a.lanes} * kN, rest = first + kHeld * stride;
  const float count = static_cast<float>(a.width);
  Raw<X, kN> held[kHeld];
  HR_UNROLL for (int p = 0; p < kHeld; ++p) held[p] = load_row<kWhole, kN>(x, first + p * stride, a.width);
  Floats<1> sum = {{0}};
  const auto add = [&](const Floats<kN>& values) { HR_UNROLL for (int j = 0; j < kN; ++j) sum.at[0] += values.at[j]; };
  HR_UNROLL for (int p = 0; p < kHeld; ++p) add(widen(held[p]));
  for (int64_t i = rest; i < a.width; i += stride) add(widen(load_row<kWhole, kN>(x, i, a.width)));
  const float mean = sum_over_group(sum, a.lanes, slots[0]).at[0] / count;
  Floats<1> squares = {{0}};
  HR_UNROLL for (int p = 0; p < kHeld; ++p)
      add_deviations<kWhole>(widen(held[p]), mean, first + p * stride, a.width, squares.at[0]);
  for (int64_t i = rest; i < a.width; i += stride)
    add_deviations<kWhole>(widen(load_row<kWhole, kN>(x, i, a.width)), mean, i, a.width, squares.at[0]);
  const float r = rsqrtf(sum_over_group(squares, a.lanes, slots[1]).at[0] / count + a.eps);
  if (own >= a.rows) return;
  Y* const y = static_cast<Y*>(a.y) + row * a.width;
  const auto finish = [&](int64_t i, const Raw<X, kN>& raw) {
    const Floats<kN> w = widen(load_row<kWhole, kN>(a.w, i, a.width));
    const Floats<kN> b = widen(load_row<kWhole, kN>(a.b, i, a.width));
    Floats<kN> values = widen(raw);
    HR_UNROLL for (int j = 0; j < kN; ++j) values.at[j] = (values.at[j] - mean) * r * w.at[j] + b.at[j];
    store_row<kWhole>(y, i, a.width, values);
  };
  HR_UNROLL for (int p = 0; p < kHeld; ++p) finish(first + p * stride, held[p]);
  for (int64_t i = rest; i < a.width; i += stride) finish(i, load_row<kWhole, kN>(x, i, a.width));
}

// A thread's part of a row of the gradient's operands. Rows of odd widths need more registers, so their addend is read
// when it is used.
template <typename X, typename D>
struct LayerNormGradRun {
  Raw<X, kN> x;
  Raw<D, kN> dy;
  Raw<X, kN> addend;
};

template <typename X, typename D, bool kWhole>
HR_DEVICE LayerNormGradRun<X, D> load_run(const LayerNormGradArgs& a, int64_t row, int64_t i) {
  LayerNormGradRun<X, D> run = {};
  run.x = load_row<kWhole, kN>(static_cast<const X*>(a.x) + row * a.width, i, a.width);
  run.dy = load_row<kWhole, kN>(static_cast<const D*>(a.dy) + row * a.width, i, a.width);
  // Without an addend, x is loaded in its place, so that no branch separates the loads.
  const X* const addend = static_cast<const X*>(a.addend ? a.addend : a.x) + row * a.width;
  if (kWhole) run.addend = load_row<kWhole, kN>(addend, i, a.width);
  return run;
}

// Adds to the sums of (x - mean)^2, dy w and dy w (x - mean).
template <typename X, typename D, bool kWhole>
HR_DEVICE void add_products(const LayerNormGradArgs& a, const LayerNormGradRun<X, D>& run, float mean, int64_t i,
                            Floats<3>& sums) {
  const Floats<kN> w = widen(load_row<kWhole, kN>(a.w, i, a.width)), x = widen(run.x), dy = widen(run.dy);
  add_deviations<kWhole>(x, mean, i, a.width, sums.at[0]);
  HR_UNROLL for (int j = 0; j < kN; ++j) {
    const float g = dy.at[j] * w.at[j];
    sums.at[1] += g;
    sums.at[2] += g * (x.at[j] - mean);
  }
}

// For a row: the mean of x, the factor r = rsqrt(variance + eps), and the means of dy w and dy w xhat.
struct LayerNormGradRow {
  float mean, r, mean_g, mean_gx;
};

// Stores dx = r (dy w - mean(dy w) - xhat mean(dy w xhat)) + addend; returns dy xhat, the row's part of dL/dw.
template <typename X, typename D, bool kWhole>
HR_DEVICE Floats<kN> finish_run(const LayerNormGradArgs& a, const LayerNormGradRun<X, D>& run,
                                const LayerNormGradRow& m, int64_t row, int64_t i) {
  const Floats<kN> w = widen(load_row<kWhole, kN>(a.w, i, a.width)), x = widen(run.x), dy = widen(run.dy);
  Raw<X, kN> addend = run.addend;
  if (!kWhole && a.addend) addend = load_row<kWhole, kN>(static_cast<const X*>(a.addend) + row * a.width, i, a.width);
  Floats<kN> dx = widen(addend), dw;
  HR_UNROLL for (int j = 0; j < kN; ++j) {
    const float xhat = (x.at[j] - m.mean) * m.r;
    dx.at[j] = (a.addend ? dx.at[j] : 0.0f) + m.r * (dy.at[j] * w.at[j] - m.mean_g - xhat * m.mean_gx);
    dw.at[j] = dy.at[j] * xhat;
  }
  store_row<kWhole>(static_cast<X*>(a.dx) + row * a.width, i, a.width, dx);
  return dw;
}

// A block processes `chunk` rows, each group of threads one at a time, with the sums of dL/dw and dL/db in registers.
// Columns that registers cannot hold are read again, and their sums are in the block's part of the scratch.
template <typename X, typename D, bool kWhole>
__global__ void __launch_bounds__(kMostRowLanes) layer_norm_grad(LayerNormGradArgs a) {
  HR_DYNAMIC_SHARED(float, shared);
  __shared__ float mean_slots[kWarp];
  __shared__ float slots[3 * kWarp];
  const RowGroup group = row_group(a.lanes);
  const int64_t begin = blockIdx.x * a.chunk, end = begin + a.chunk < a.rows ? begin + a.chunk : a.rows;
  const int64_t first = group.lane * kN, stride = int64_t{a.lanes} * kN, rest = first + kHeld * stride;
  const float count = static_cast<float>(a.width);
  float* const partial = a.partial ? a.partial + blockIdx.x * 2 * a.width : nullptr;
  Floats<kN> dw[kHeld] = {}, db[kHeld] = {};
  for (int64_t base = begin; base < end; base += group.count) {
    const bool here = base + group.index < end;
    const int64_t row = here ? base + group.index : base;
    LayerNormGradRun<X, D> runs[kHeld];
    HR_UNROLL for (int p = 0; p < kHeld; ++p) runs[p] = load_run<X, D, kWhole>(a, row, first + p * stride);
    Floats<1> sum = {{0}};
    const auto add = [&](const Floats<kN>& x) { HR_UNROLL for (int j = 0; j < kN; ++j) sum.at[0] += x.at[j]; };
    HR_UNROLL for (int p = 0; p < kHeld; ++p) add(widen(runs[p].x));
    for (int64_t i = rest; i < a.width; i += stride)
      add(widen(load_row<kWhole, kN>(static_cast<const X*>(a.x) + row * a.width, i, a.width)));
    LayerNormGradRow m;
    m.mean = sum_over_group(sum, a.lanes, mean_slots).at[0] / count;
    Floats<3> sums = {{0, 0, 0}};
    HR_UNROLL for (int p = 0; p < kHeld; ++p) add_products<X, D, kWhole>(a, runs[p], m.mean, first + p * stride, sums);
    for (int64_t i = rest; i < a.width; i += stride)
      add_products<X, D, kWhole>(a, load_run<X, D, kWhole>(a, row, i), m.mean, i, sums);
    sums = sum_over_group(sums, a.lanes, slots);
    m.r = rsqrtf(sums.at[0] / count + a.eps);
    m.mean_g = sums.at[1] / count;
    m.mean_gx = sums.at[2] * m.r / count;
    if (!here) continue;
    HR_UNROLL for (int p = 0; p < kHeld; ++p) {
      const Floats<kN> part = finish_run<X, D, kWhole>(a, runs[p], m, row, first + p * stride), dy = widen(runs[p].dy);
      HR_UNROLL for (int j = 0; j < kN; ++j) {
        dw[p].at[j] += part.at[j];
        db[p].at[j] += dy.at[j];
      }
    }
    for (int64_t i = rest; i < a.width; i += stride) {
      const LayerNormGradRun<X, D> run = load_run<X, D, kWhole>(a, row, i);
      const Floats<kN> part = finish_run<X, D, kWhole>(a, run, m, row, i);
      if (!partial) continue;
      add_to_sums<kWhole>(partial, i, a.width, row == begin, part);
      add_to_sums<kWhole>(partial + a.width, i, a.width, row == begin, widen(run.dy));
    }
  }
  if (!partial) return;
  store_group_sums<kWhole>(partial, a.width, group, a.lanes, dw, shared);
  __syncthreads();
  store_group_sums<kWhole>(partial + a.width, a.width, group, a.lanes, db, shared);
}

#ifdef __CUDACC_RTC__
HR_INSTANTIATE_ROWS(layer_norm, LayerNormArgs)
HR_INSTANTIATE_ROWS(layer_norm_grad, LayerNormGradArgs)
#else
void launch_layer_norm(FloatType x, FloatType y, const LayerNormArgs& args, CudaStream stream) {
  LayerNormArgs a = args;
  a.lanes = row_lanes(a.width);
  const Grid grid = row_grid(a.rows, a.width);
  with_float_types(x, y, [&](auto x_zero, auto y_zero) {
    using X = decltype(x_zero);
    using Y = decltype(y_zero);
    launch(a.width % kN == 0 ? layer_norm<X, Y, true> : layer_norm<X, Y, false>, grid, stream, a);
  });
}

void launch_layer_norm_grad(FloatType x, FloatType dy, const LayerNormGradArgs& args, const NormAccumulator& weight,
                            const NormAccumulator& bias, CudaStream stream) {
  LayerNormGradArgs a = args;
  a.lanes = row_lanes(a.width);
  const RowGradientLaunch blocks = row_gradient_launch(a.rows, a.width, weight.wanted || bias.wanted);
  a.chunk = blocks.chunk;
  with_float_types(x, dy, [&](auto x_zero, auto dy_zero) {
    using X = decltype(x_zero);
    using D = decltype(dy_zero);
    launch(a.width % kN == 0 ? layer_norm_grad<X, D, true> : layer_norm_grad<X, D, false>, blocks.grid, stream, a);
  });
  if (weight.wanted)
    launch_column_sums(a.partial, blocks.grid.x, 2 * a.width, a.width, weight.overwrite, weight.acc, stream);
  if (bias.wanted)
    launch_column_sums(a.partial + a.width, blocks.grid.x, 2 * a.width, a.width, bias.overwrite, bias.acc, stream);
}
#endif

}  // namespace headroom::cuda
