// Products with few rows, as in decoding. Reading the weight dominates, so it is read once, 16 bytes per thread at a
// time, and each load is used for every row.
#include "ops/cuda/launch.cuh"
#include "ops/linear/cuda_kernels.h"

namespace headroom::cuda {

template <typename T, typename R>
struct RowProduct {
  const T* a;
  const T* b;
  R* c;
  const float* bias;
  const R* addend;
  int64_t rows, cols, depth, b_step;

  HR_DEVICE void put(int64_t row, int64_t col, float sum) const {
    const int64_t at = row * cols + col;
    if (bias) sum += bias[col];
    if (addend) sum += widen(addend[at]);
    c[at] = narrow<R>(sum);
  }
};

constexpr int kDotWarps = 4;

// Sums of kCount values, a power of two, over the lanes of a warp: lane l gets the sum of value l / (32 / kCount). In
// each round a lane gives away half of its values and takes the other half of its partner's. That takes at most kCount
// - 1 shuffles for the halving, where separate reductions would take five per value.
template <int kCount, int kDistance = kWarp / 2>
HR_DEVICE float reduce_each(const float (&values)[kCount]) {
  if constexpr (kDistance == 0) {
    return values[0];
  } else if constexpr (kCount == 1) {
    const float sum[1] = {values[0] + __shfl_xor_sync(kAllLanes, values[0], kDistance)};
    return reduce_each<1, kDistance / 2>(sum);
  } else {
    const bool upper = (threadIdx.x & kDistance) != 0;
    float kept[kCount / 2];
    HR_UNROLL
    for (int i = 0; i < kCount / 2; ++i)
      kept[i] = (upper ? values[i + kCount / 2] : values[i]) +
                __shfl_xor_sync(kAllLanes, upper ? values[i] : values[i + kCount / 2], kDistance);
    return reduce_each<kCount / 2, kDistance / 2>(kept);
  }
}

// sums += products at kAhead packs of the depth, a warp's width apart. All loads of B are issued before the first is
// used.
template <int kAhead, int N, typename T, int kRows, int kCols>
HR_DEVICE void dot_packs(const T* const (&a)[kRows], const T* const (&b)[kCols], int64_t begin,
                         float (&sums)[kRows * kCols]) {
  Pack<T, N> found[kAhead][kCols];
  HR_UNROLL
  for (int ahead = 0; ahead < kAhead; ++ahead) {
    HR_UNROLL
    for (int col = 0; col < kCols; ++col)
      found[ahead][col] = *reinterpret_cast<const Pack<T, N>*>(b[col] + begin + ahead * kWarp * N);
  }
  HR_UNROLL
  for (int at = 0; at < kAhead * kRows; ++at) {
    const int ahead = at / kRows, row = at % kRows;
    const Pack<T, N> left = *reinterpret_cast<const Pack<T, N>*>(a[row] + begin + ahead * kWarp * N);
    HR_UNROLL
    for (int i = 0; i < N * kCols; ++i)
      sums[row * kCols + i / N] += widen(left.at[i % N]) * widen(found[ahead][i / N].at[i % N]);
  }
}

// B is stored as [cols, depth]. A warp processes kCols rows of B and kRows rows of A (rows past the last repeat it),
// with N elements per load.
template <typename T, typename R, int kRows, int kCols, int N>
__global__ __launch_bounds__(kDotWarps* kWarp) void dot_rows(RowProduct<T, R> p) {
  constexpr int kAhead = 2;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kDotWarps + warp) * kCols;
  const T* b[kCols];
  const T* a[kRows];
  HR_UNROLL
  for (int col = 0; col < kCols; ++col) b[col] = p.b + (first + col < p.cols ? first + col : p.cols - 1) * p.b_step;
  HR_UNROLL
  for (int row = 0; row < kRows; ++row) a[row] = p.a + (row < p.rows ? row : p.rows - 1) * p.depth;
  float sums[kRows * kCols] = {};
  int64_t at = lane * N;
  for (; at + (kAhead - 1) * kWarp * N < p.depth; at += kAhead * kWarp * N) dot_packs<kAhead, N>(a, b, at, sums);
  for (; at < p.depth; at += kWarp * N) dot_packs<1, N>(a, b, at, sums);
  constexpr int kShare = kWarp / (kRows * kCols);  // lanes that end up with the same sum
  const float sum = reduce_each(sums);
  const int row = lane / kShare / kCols;
  const int64_t col = first + lane / kShare % kCols;
  if (lane % kShare == 0 && row < p.rows && col < p.cols) p.put(row, col, sum);
}

constexpr int kCombineWarps = 16;

// sums += products at kAhead rows of B, kCombineWarps apart.
template <int kAhead, typename T, typename R, int kRows, int N>
HR_DEVICE void combine_packs(const RowProduct<T, R>& p, int64_t begin, int64_t col, float (&sums)[kRows][N]) {
  Pack<T, N> found[kAhead];
  HR_UNROLL
  for (int ahead = 0; ahead < kAhead; ++ahead)
    found[ahead] = *reinterpret_cast<const Pack<T, N>*>(p.b + (begin + ahead * kCombineWarps) * p.b_step + col);
  HR_UNROLL
  for (int at = 0; at < kAhead * kRows; ++at) {
    const int ahead = at / kRows, row = at % kRows;
    const float left = widen(p.a[(row < p.rows ? row : p.rows - 1) * p.depth + begin + ahead * kCombineWarps]);
    HR_UNROLL
    for (int i = 0; i < N; ++i) sums[row][i] += left * widen(found[ahead].at[i]);
  }
}

// B is stored as [depth, cols]. Lanes take neighbouring columns, N each, and warps every sixteenth row of B.
template <typename T, typename R, int kRows, int N>
__global__ __launch_bounds__(kCombineWarps* kWarp) void combine_rows(RowProduct<T, R> p) {
  constexpr int kCols = kWarp * N, kAhead = 4;
  __shared__ float parts[kCombineWarps][kCols];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kCols, col = first + lane * N;
  float sums[kRows][N] = {};
  if (col < p.cols) {
    int64_t step = warp;
    for (; step + (kAhead - 1) * kCombineWarps < p.depth; step += kAhead * kCombineWarps)
      combine_packs<kAhead>(p, step, col, sums);
    for (; step < p.depth; step += kCombineWarps) combine_packs<1>(p, step, col, sums);
  }
  HR_UNROLL
  for (int row = 0; row < kRows; ++row) {
    HR_UNROLL
    for (int i = 0; i < N; ++i) parts[warp][lane * N + i] = sums[row][i];
    __syncthreads();
    const int at = static_cast<int>(threadIdx.x);
    if (at < kCols && first + at < p.cols && row < p.rows) {
      float total = 0;
      for (int i = 0; i < kCombineWarps; ++i) total += parts[i][at];
      p.put(row, first + at, total);
    }
    __syncthreads();
  }
}

#ifdef __CUDACC_RTC__
#define HR_ROWS(T, R, kRows, kCols)                                                  \
  template __global__ void dot_rows<T, R, kRows, kCols, kPack<T>>(RowProduct<T, R>); \
  template __global__ void dot_rows<T, R, kRows, kCols, 1>(RowProduct<T, R>);        \
  template __global__ void combine_rows<T, R, kRows, 4>(RowProduct<T, R>);           \
  template __global__ void combine_rows<T, R, kRows, 1>(RowProduct<T, R>)
#define HR_FEW(T, R)   \
  HR_ROWS(T, R, 1, 2); \
  HR_ROWS(T, R, 2, 2); \
  HR_ROWS(T, R, 4, 4); \
  HR_ROWS(T, R, 8, 4)
HR_FEW(float, float);
HR_FEW(Bf16, float);
HR_FEW(Bf16, Bf16);
HR_FEW(Half, float);
HR_FEW(Half, Half);
#else
namespace {

template <typename T, typename R, int kRows, int kCols>
void launch_rows(const DeviceProduct& p, CudaStream stream) {
  const RowProduct<T, R> rows{static_cast<const T*>(p.a),
                              static_cast<const T*>(p.b),
                              static_cast<R*>(p.c),
                              p.bias,
                              static_cast<const R*>(p.addend),
                              p.rows,
                              p.cols,
                              p.depth,
                              p.b_step};
  const auto aligned = [&](const void* at, int64_t step, int pack) {
    return step % pack == 0 && reinterpret_cast<uintptr_t>(at) % (static_cast<size_t>(pack) * sizeof(T)) == 0;
  };
  if (p.b_transposed) {
    const bool packed = aligned(p.a, p.depth, kPack<T>) && aligned(p.b, p.b_step, kPack<T>);
    const Grid grid{(p.cols + kCols * kDotWarps - 1) / (kCols * kDotWarps), 1, 1, kDotWarps * kWarp, 0};
    launch(packed ? dot_rows<T, R, kRows, kCols, kPack<T>> : dot_rows<T, R, kRows, kCols, 1>, grid, stream, rows);
    return;
  }
  const bool packed = p.cols % 4 == 0 && aligned(p.b, p.b_step, 4);
  const int cols = packed ? 4 * kWarp : kWarp;
  launch(packed ? combine_rows<T, R, kRows, 4> : combine_rows<T, R, kRows, 1>,
         Grid{(p.cols + cols - 1) / cols, 1, 1, kCombineWarps * kWarp, 0}, stream, rows);
}

template <typename T, typename R>
void launch_few(const DeviceProduct& p, CudaStream stream) {
  if (p.rows < 1) return;
  if (p.rows == 1)
    launch_rows<T, R, 1, 2>(p, stream);
  else if (p.rows == 2)
    launch_rows<T, R, 2, 2>(p, stream);
  else if (p.rows <= 4)
    launch_rows<T, R, 4, 4>(p, stream);
  else
    launch_rows<T, R, 8, 4>(p, stream);
}

}  // namespace

void launch_row_product(const DeviceProduct& p, CudaStream stream) {
  with_product_types(p.operand, p.result, [&](auto t, auto r) { launch_few<decltype(t), decltype(r)>(p, stream); });
}
#endif

}  // namespace headroom::cuda
