// Sums over rows: blocks add a part of the rows for some columns, then the parts are added in order.
#include "ops/cuda/column_sums.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/linear/cuda_kernels.h"
#include "ops/linear/cuda_sum_scratch.h"

namespace headroom::cuda {

constexpr int kSumRun = kSumColumns / kWarp;  // neighbouring columns per lane
constexpr int kSumWarps = 8;                  // per block: warp w adds rows w, w + 8, ... of its part

template <typename T>
struct RowsToSum {
  const T* x;
  int64_t rows, cols;
  int64_t step;  // elements from one row to the next
  int64_t each;  // rows per part
  float* to;     // [part][cols], or the sums themselves if there is one part
  bool adds;     // add to the values there
};

// kWhole: cols and step are multiples of kSumRun and x is aligned to 16 bytes.
template <typename T, bool kWhole>
__global__ __launch_bounds__(kSumWarps* kWarp) void sum_over_rows(RowsToSum<T> a) {
  __shared__ float parts[kSumWarps][kSumColumns];
  constexpr int kAhead = 4;  // loads in flight
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t first = int64_t{blockIdx.x} * kSumColumns, begin = blockIdx.y * a.each;
  const int64_t end = begin + a.each < a.rows ? begin + a.each : a.rows, column = first + lane * kSumRun;
  Floats<kSumRun> sum = {};
  for (int64_t base = begin + warp; base < end; base += kAhead * kSumWarps) {
    Raw<T, kSumRun> held[kAhead];
    HR_UNROLL for (int i = 0; i < kAhead; ++i) {
      const int64_t row = base + i * kSumWarps;
      // Past the end the part's first row is loaded instead, so that no branch separates the loads.
      held[i] = load_row<kWhole, kSumRun>(a.x + (row < end ? row : begin) * a.step, column, a.cols);
    }
    HR_UNROLL for (int i = 0; i < kAhead; ++i) {
      const Floats<kSumRun> x = widen(held[i]);
      const bool here = base + i * kSumWarps < end;
      HR_UNROLL for (int j = 0; j < kSumRun; ++j) sum.at[j] += here ? x.at[j] : 0.0f;
    }
  }
  HR_UNROLL for (int j = 0; j < kSumRun; ++j) parts[warp][j * kWarp + lane] = sum.at[j];
  __syncthreads();
  const int at = static_cast<int>(threadIdx.x), place = at % kSumRun * kWarp + at / kSumRun;
  if (first + at >= a.cols) return;
  float total = 0;
  for (int w = 0; w < kSumWarps; ++w) total += parts[w][place];
  float* const to = a.to + blockIdx.y * a.cols + first + at;
  *to = a.adds ? *to + total : total;
}

#ifdef __CUDACC_RTC__
template __global__ void sum_over_rows<float, true>(RowsToSum<float>);
template __global__ void sum_over_rows<float, false>(RowsToSum<float>);
template __global__ void sum_over_rows<Bf16, true>(RowsToSum<Bf16>);
template __global__ void sum_over_rows<Half, true>(RowsToSum<Half>);
template __global__ void sum_over_rows<Bf16, false>(RowsToSum<Bf16>);
template __global__ void sum_over_rows<Half, false>(RowsToSum<Half>);
#else
void launch_sum_over_rows(FloatType type, const void* x, int64_t rows, int64_t cols, int64_t step, float* sums,
                          bool overwrite, void* scratch, CudaStream stream) {
  const int64_t parts = sum_parts(rows, cols);
  const bool whole = cols % kSumRun == 0 && step % kSumRun == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0;
  float* const partial = static_cast<float*>(scratch);
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    const RowsToSum<T> a{static_cast<const T*>(x), rows, cols, step, sum_rows(rows, cols), parts > 1 ? partial : sums,
                         parts <= 1 && !overwrite};
    const Grid grid{(cols + kSumColumns - 1) / kSumColumns, parts, 1, kSumWarps * kWarp, 0};
    launch(whole ? sum_over_rows<T, true> : sum_over_rows<T, false>, grid, stream, a);
  });
  if (parts > 1) launch_column_sums(partial, parts, cols, cols, overwrite, sums, stream);
}
#endif

}  // namespace headroom::cuda
