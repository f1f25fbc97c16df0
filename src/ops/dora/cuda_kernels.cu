// Device code of row lengths, and of products with rows of given lengths.
#include "ops/dora/cuda_kernels.h"

#include "ops/cuda/column_sums.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/rows.cuh"

namespace headroom::cuda {

constexpr int kLengthTile = 8;  // rows of the weight per block, which share the loads of a
constexpr int kLengthRun = 4;   // neighbouring columns per thread

// A block computes the lengths of some rows: every thread adds the squares of its columns, then the block its threads'.
template <typename W, typename M, bool kWhole>
__global__ void row_lengths(RowLengthsArgs args) {
  __shared__ float slots[kLengthTile][kWarp];
  const int64_t first = int64_t{blockIdx.x} * kLengthTile;
  Floats<kLengthTile> squares = {};
  for (int64_t i = int64_t{threadIdx.x} * kLengthRun; i < args.ins; i += int64_t{blockDim.x} * kLengthRun) {
    Floats<kLengthRun> sums[kLengthTile] = {};
    for (int64_t k = 0; k < args.rank; ++k) {
      const Floats<kLengthRun> a =
          widen(load_row<kWhole, kLengthRun>(static_cast<const M*>(args.a) + k * args.ins, i, args.ins));
      HR_UNROLL for (int r = 0; r < kLengthTile; ++r) {
        const float b = widen(static_cast<const M*>(args.b)[clamp_index(first + r, args.outs) * args.rank + k]);
        HR_UNROLL for (int j = 0; j < kLengthRun; ++j) sums[r].at[j] += b * a.at[j];
      }
    }
    HR_UNROLL for (int r = 0; r < kLengthTile; ++r) {
      const W* const row = static_cast<const W*>(args.weight) + clamp_index(first + r, args.outs) * args.ins;
      const Floats<kLengthRun> w = widen(load_row<kWhole, kLengthRun>(row, i, args.ins));
      HR_UNROLL for (int j = 0; j < kLengthRun; ++j) {
        const float value = w.at[j] + args.factor * sums[r].at[j];
        squares.at[r] += value * value;
      }
    }
  }
  HR_UNROLL for (int r = 0; r < kLengthTile; ++r) {
    const float total = reduce_block(squares.at[r], slots[r], 0.0f, Sum());
    if (threadIdx.x == 0 && first + r < args.outs) args.lengths[first + r] = sqrtf(total);
  }
}

HR_DEVICE float factor_of(float above, float length) { return length == 0.0f ? 0.0f : above / length; }

constexpr int kScaleRun = 8;

// A run of elements, which lie in one row.
template <typename Z, typename Y>
struct RunScaler {
  const MagnitudeArgs& args;

  template <typename Run>
  HR_DEVICE void operator()(Run, int64_t i) const {
    constexpr int kRun = Run::value;
    const int64_t column = i - quotient(i, args.width) * args.width;
    const Floats<kRun> z = load_floats<kRun>(static_cast<const Z*>(args.z) + i),
                       magnitude = load_floats<kRun>(args.magnitude + column),
                       lengths = load_floats<kRun>(args.lengths + column);
    Floats<kRun> y, bias = {}, residual = {};
    if (args.bias) bias = load_floats<kRun>(args.bias + column);
    if (args.residual) residual = load_floats<kRun>(static_cast<const Y*>(args.residual) + i);
    HR_UNROLL for (int j = 0; j < kRun; ++j) {
      const float scaled = z.at[j] * factor_of(magnitude.at[j], lengths.at[j]);
      y.at[j] = (args.bias ? scaled + bias.at[j] : scaled) + (args.residual ? residual.at[j] : 0.0f);
    }
    store_floats(static_cast<Y*>(args.y) + i, y);
  }
};

template <typename Z, typename Y, bool kWhole>
__global__ void magnitude(MagnitudeArgs args) {
  for_runs<kWhole ? kScaleRun : 1>(args.rows * args.width, RunScaler<Z, Y>{args});
}

constexpr int kN = kRowRun, kHeld = kRowRuns;

// Stores a run of dz; returns dy z / lengths.
template <typename Z, typename D, bool kWhole>
HR_DEVICE Floats<kN> finish_magnitude(const MagnitudeGradArgs& a, int64_t row, int64_t i) {
  const Floats<kN> dy = widen(load_row<kWhole, kN>(static_cast<const D*>(a.dy) + row * a.width, i, a.width)),
                   z = widen(load_row<kWhole, kN>(static_cast<const Z*>(a.z) + row * a.width, i, a.width)),
                   magnitude = widen(load_row<kWhole, kN>(a.magnitude, i, a.width)),
                   lengths = widen(load_row<kWhole, kN>(a.lengths, i, a.width));
  Floats<kN> dz, part;
  HR_UNROLL for (int j = 0; j < kN; ++j) {
    dz.at[j] = dy.at[j] * factor_of(magnitude.at[j], lengths.at[j]);
    part.at[j] = factor_of(dy.at[j] * z.at[j], lengths.at[j]);
  }
  store_row<kWhole>(static_cast<Z*>(a.dz) + row * a.width, i, a.width, dz);
  return part;
}

// A block processes `chunk` rows, each group of threads one at a time, with the sums in registers; those of columns
// that registers cannot hold are in the block's part of the scratch.
template <typename Z, typename D, bool kWhole>
__global__ void __launch_bounds__(kMostRowLanes) magnitude_grad(MagnitudeGradArgs a) {
  HR_DYNAMIC_SHARED(float, shared);
  const RowGroup group = row_group(a.lanes);
  const int64_t begin = blockIdx.x * a.chunk, end = begin + a.chunk < a.rows ? begin + a.chunk : a.rows;
  const int64_t first = group.lane * kN, stride = int64_t{a.lanes} * kN, rest = first + kHeld * stride;
  float* const partial = a.partial + blockIdx.x * a.width;
  Floats<kN> sums[kHeld] = {};
  for (int64_t row = begin + group.index; row < end; row += group.count) {
    HR_UNROLL for (int p = 0; p < kHeld; ++p) {
      const Floats<kN> part = finish_magnitude<Z, D, kWhole>(a, row, first + p * stride);
      HR_UNROLL for (int j = 0; j < kN; ++j) sums[p].at[j] += part.at[j];
    }
    for (int64_t i = rest; i < a.width; i += stride)
      add_to_sums<kWhole>(partial, i, a.width, row == begin, finish_magnitude<Z, D, kWhole>(a, row, i));
  }
  store_group_sums<kWhole>(partial, a.width, group, a.lanes, sums, shared);
}

#ifdef __CUDACC_RTC__
HR_INSTANTIATE_ROWS(row_lengths, RowLengthsArgs)
HR_INSTANTIATE_ROWS(magnitude, MagnitudeArgs)
HR_INSTANTIATE_ROWS(magnitude_grad, MagnitudeGradArgs)
#else
void launch_row_lengths(FloatType weight, FloatType matrices, const RowLengthsArgs& args, CudaStream stream) {
  Grid grid;
  grid.x = (args.outs + kLengthTile - 1) / kLengthTile;
  with_float_types(weight, matrices, [&](auto w_zero, auto m_zero) {
    using W = decltype(w_zero);
    using M = decltype(m_zero);
    launch(args.ins % kLengthRun == 0 ? row_lengths<W, M, true> : row_lengths<W, M, false>, grid, stream, args);
  });
}

void launch_magnitude(FloatType z, FloatType y, const MagnitudeArgs& args, int multiprocessors, CudaStream stream) {
  const bool whole = args.width % kScaleRun == 0;
  const Grid grid = grid_over(args.rows * args.width / (whole ? kScaleRun : 1), multiprocessors);
  with_float_types(z, y, [&](auto z_zero, auto y_zero) {
    using Z = decltype(z_zero);
    using Y = decltype(y_zero);
    launch(whole ? magnitude<Z, Y, true> : magnitude<Z, Y, false>, grid, stream, args);
  });
}

void launch_magnitude_grad(FloatType z, FloatType dy, const MagnitudeGradArgs& args, bool overwrite, float* acc,
                           CudaStream stream) {
  MagnitudeGradArgs a = args;
  a.lanes = row_lanes(a.width);
  const RowGradientLaunch blocks = row_gradient_launch(a.rows, a.width, true);
  a.chunk = blocks.chunk;
  with_float_types(z, dy, [&](auto z_zero, auto dy_zero) {
    using Z = decltype(z_zero);
    using D = decltype(dy_zero);
    launch(a.width % kN == 0 ? magnitude_grad<Z, D, true> : magnitude_grad<Z, D, false>, blocks.grid, stream, a);
  });
  launch_column_sums(a.partial, blocks.grid.x, a.width, a.width, overwrite, acc, stream);
}
#endif

}  // namespace headroom::cuda
