// Device code of the RMS norm and its gradient.
#include "ops/rms_norm/cuda_kernels.h"

#include "ops/cuda/column_sums.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/rows.cuh"

namespace headroom::cuda {

constexpr int kN = kRowRun, kHeld = kRowRuns;

// A group of threads keeps a row in registers from the sum to the product, so that x is read once; a residual is loaded
// during the sum. The norm is rounded to Y before the residual is added, without a fused multiply-add: the bits are
// those of norm, then add.
template <typename X, typename Y, bool kWhole>
__global__ void __launch_bounds__(kMostRowLanes) rms_norm(RmsNormArgs a) {
  __shared__ float slots[kWarp];
  const RowGroup group = row_group(a.lanes);
  const int64_t own = int64_t{blockIdx.x} * group.count + group.index, row = clamp_index(own, a.rows);
  const X* const x = static_cast<const X*>(a.x) + row * a.width;
  const int64_t first = group.lane * kN, stride = int64_t{a.lanes} * kN;
  Raw<X, kN> held[kHeld];
  HR_UNROLL for (int p = 0; p < kHeld; ++p) held[p] = load_row<kWhole, kN>(x, first + p * stride, a.width);
  Floats<1> squares = {{0}};
  const auto add = [&](const Raw<X, kN>& raw) {
    const Floats<kN> values = widen(raw);
    HR_UNROLL for (int j = 0; j < kN; ++j) squares.at[0] += values.at[j] * values.at[j];
  };
  HR_UNROLL for (int p = 0; p < kHeld; ++p) add(held[p]);
  Raw<Y, kN> under[kHeld] = {};
  const Y* const residual = static_cast<const Y*>(a.residual) + row * a.width;
  if (a.residual)
    HR_UNROLL for (int p = 0; p < kHeld; ++p) under[p] = load_row<kWhole, kN>(residual, first + p * stride, a.width);
  for (int64_t i = first + kHeld * stride; i < a.width; i += stride) add(load_row<kWhole, kN>(x, i, a.width));
  squares = sum_over_group(squares, a.lanes, slots);
  const float r = rsqrtf(squares.at[0] / static_cast<float>(a.width) + a.eps);
  if (own >= a.rows) return;
  Y* const y = static_cast<Y*>(a.y) + row * a.width;
  const auto finish = [&](int64_t i, const Raw<X, kN>& raw, const Raw<Y, kN>& below) {
    const Floats<kN> w = widen(load_row<kWhole, kN>(a.w, i, a.width)), base = widen(below);
    Floats<kN> values = widen(raw);
    HR_UNROLL for (int j = 0; j < kN; ++j) values.at[j] *= r * (a.unit + w.at[j]);
    if (a.residual)
      HR_UNROLL for (int j = 0; j < kN; ++j) values.at[j] = __fadd_rn(base.at[j], widen(narrow<Y>(values.at[j])));
    store_row<kWhole>(y, i, a.width, values);
  };
  HR_UNROLL for (int p = 0; p < kHeld; ++p) finish(first + p * stride, held[p], under[p]);
  for (int64_t i = first + kHeld * stride; i < a.width; i += stride)
    finish(i, load_row<kWhole, kN>(x, i, a.width),
           a.residual ? load_row<kWhole, kN>(residual, i, a.width) : Raw<Y, kN>{});
}

// A thread's part of a row of the gradient's operands.
template <typename X, typename D>
struct RmsNormGradRun {
  Raw<X, kN> x;
  Raw<D, kN> dy;
  Raw<X, kN> addend;
};

template <typename X, typename D, bool kWhole>
HR_DEVICE RmsNormGradRun<X, D> load_run(const RmsNormGradArgs& a, int64_t row, int64_t i) {
  RmsNormGradRun<X, D> run = {};
  run.x = load_row<kWhole, kN>(static_cast<const X*>(a.x) + row * a.width, i, a.width);
  run.dy = load_row<kWhole, kN>(static_cast<const D*>(a.dy) + row * a.width, i, a.width);
  // Without an addend, x is loaded in its place, so that no branch separates the loads.
  const X* const addend = static_cast<const X*>(a.addend ? a.addend : a.x) + row * a.width;
  run.addend = load_row<kWhole, kN>(addend, i, a.width);
  return run;
}

// Adds to the sums of x^2 and of dy w x.
template <typename X, typename D, bool kWhole>
HR_DEVICE void add_products(const RmsNormGradArgs& a, const RmsNormGradRun<X, D>& run, int64_t i, Floats<2>& sums) {
  const Floats<kN> w = widen(load_row<kWhole, kN>(a.w, i, a.width)), x = widen(run.x), dy = widen(run.dy);
  HR_UNROLL for (int j = 0; j < kN; ++j) {
    sums.at[0] += x.at[j] * x.at[j];
    sums.at[1] += dy.at[j] * (a.unit + w.at[j]) * x.at[j];
  }
}

// Stores dx = r (dy w - xhat mean(dy w xhat)) + addend, and a bf16 copy if wanted; returns dy xhat, the row's part of
// dL/dw.
template <typename X, typename D, bool kWhole>
HR_DEVICE Floats<kN> finish_run(const RmsNormGradArgs& a, const RmsNormGradRun<X, D>& run, const Floats<2>& sums,
                                int64_t row, int64_t i) {
  const float count = static_cast<float>(a.width);
  const float r = rsqrtf(sums.at[0] / count + a.eps), mean = sums.at[1] * r / count;
  const Floats<kN> w = widen(load_row<kWhole, kN>(a.w, i, a.width)), x = widen(run.x), dy = widen(run.dy);
  Floats<kN> dx = widen(run.addend), dw;
  HR_UNROLL for (int j = 0; j < kN; ++j) {
    const float xhat = x.at[j] * r;
    dx.at[j] = (a.addend ? dx.at[j] : 0.0f) + r * (dy.at[j] * (a.unit + w.at[j]) - xhat * mean);
    dw.at[j] = dy.at[j] * xhat;
  }
  store_row<kWhole>(static_cast<X*>(a.dx) + row * a.width, i, a.width, dx);
  if (sizeof(X) == 4 && a.narrow) store_row<kWhole>(static_cast<Bf16*>(a.narrow) + row * a.width, i, a.width, dx);
  return dw;
}

// A block processes `chunk` rows, each group of threads one at a time, with the sums of dL/dw in registers. Columns
// that registers cannot hold are read twice, and their sums are in the block's part of the scratch.
template <typename X, typename D, bool kWhole>
__global__ void __launch_bounds__(kMostRowLanes) rms_norm_grad(RmsNormGradArgs a) {
  HR_DYNAMIC_SHARED(float, shared);
  __shared__ float slots[2][2 * kWarp];
  const RowGroup group = row_group(a.lanes);
  const int64_t begin = blockIdx.x * a.chunk, end = begin + a.chunk < a.rows ? begin + a.chunk : a.rows;
  const int64_t first = group.lane * kN, stride = int64_t{a.lanes} * kN, rest = first + kHeld * stride;
  Floats<kN> dw[kHeld] = {};
  int turn = 0;
  for (int64_t base = begin; base < end; base += group.count, turn ^= 1) {
    const bool here = base + group.index < end;
    const int64_t row = here ? base + group.index : base;
    RmsNormGradRun<X, D> runs[kHeld];
    HR_UNROLL for (int p = 0; p < kHeld; ++p) runs[p] = load_run<X, D, kWhole>(a, row, first + p * stride);
    Floats<2> sums = {{0, 0}};
    HR_UNROLL for (int p = 0; p < kHeld; ++p) add_products<X, D, kWhole>(a, runs[p], first + p * stride, sums);
    for (int64_t i = rest; i < a.width; i += stride)
      add_products<X, D, kWhole>(a, load_run<X, D, kWhole>(a, row, i), i, sums);
    sums = sum_over_group(sums, a.lanes, slots[turn]);
    if (!here) continue;
    HR_UNROLL for (int p = 0; p < kHeld; ++p) {
      const Floats<kN> part = finish_run<X, D, kWhole>(a, runs[p], sums, row, first + p * stride);
      HR_UNROLL for (int j = 0; j < kN; ++j) dw[p].at[j] += part.at[j];
    }
    for (int64_t i = rest; i < a.width; i += stride) {
      const Floats<kN> part = finish_run<X, D, kWhole>(a, load_run<X, D, kWhole>(a, row, i), sums, row, i);
      if (a.partial) add_to_sums<kWhole>(a.partial + blockIdx.x * a.width, i, a.width, row == begin, part);
    }
  }
  if (a.partial) store_group_sums<kWhole>(a.partial + blockIdx.x * a.width, a.width, group, a.lanes, dw, shared);
}

#ifdef __CUDACC_RTC__
HR_INSTANTIATE_ROWS(rms_norm, RmsNormArgs)
HR_INSTANTIATE_ROWS(rms_norm_grad, RmsNormGradArgs)
#else
void launch_rms_norm(FloatType x, FloatType y, const RmsNormArgs& args, CudaStream stream) {
  RmsNormArgs a = args;
  a.lanes = row_lanes(a.width);
  const Grid grid = row_grid(a.rows, a.width);
  with_float_types(x, y, [&](auto x_zero, auto y_zero) {
    using X = decltype(x_zero);
    using Y = decltype(y_zero);
    launch(a.width % kN == 0 ? rms_norm<X, Y, true> : rms_norm<X, Y, false>, grid, stream, a);
  });
}

void launch_rms_norm_grad(FloatType x, FloatType dy, const RmsNormGradArgs& args, bool train, bool overwrite,
                          float* acc, CudaStream stream) {
  RmsNormGradArgs a = args;
  a.lanes = row_lanes(a.width);
  const RowGradientLaunch blocks = row_gradient_launch(a.rows, a.width, train);
  a.chunk = blocks.chunk;
  with_float_types(x, dy, [&](auto x_zero, auto dy_zero) {
    using X = decltype(x_zero);
    using D = decltype(dy_zero);
    launch(a.width % kN == 0 ? rms_norm_grad<X, D, true> : rms_norm_grad<X, D, false>, blocks.grid, stream, a);
  });
  if (train) launch_column_sums(a.partial, blocks.grid.x, a.width, a.width, overwrite, acc, stream);
}
#endif

}  // namespace headroom::cuda
