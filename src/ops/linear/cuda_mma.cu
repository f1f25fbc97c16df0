// Products of bf16 operands by tiles on tensor cores, from sm_80 on. Parts of the depth travel to shared memory two
// ahead of the one that is multiplied; rows lie there eight elements further apart than they are long, so that eight
// consecutive ones begin in different banks.
#include "ops/cuda/launch.cuh"
#include "ops/cuda/mma.cuh"
#include "ops/linear/cuda_kernels.h"

namespace headroom::cuda {

constexpr int kMmaSteps = 32;  // of the depth in a part
constexpr int kMmaParts = 3;   // in shared memory
constexpr int kMmaGap = 8;     // elements between rows

struct MmaOperands {
  const Bf16* a;
  const Bf16* b;
  int64_t a_step, b_step;
  int rows, cols, depth;
};

template <typename R>
struct MmaResult {
  R* at;
  const float* bias;
  const R* addend;
  int rows, cols;
  int64_t step;

  HR_DEVICE void put(int row, int col, float sum) const {
    if (row >= rows || col >= cols) return;
    const int64_t to = row * step + col;
    if (bias) sum += bias[col];
    if (addend) sum += widen(addend[to]);
    at[to] = narrow<R>(sum);
  }
};

// Begins to copy [kLines][kLength] of a stored operand, from line `line` and element `column` on; what lies outside its
// `lines` of `length` elements reads as zero.
template <int kLines, int kLength, int kThreads>
HR_DEVICE void begin_tile(Bf16* tile, const Bf16* from, int64_t step, int line, int lines, int column, int length) {
  constexpr int kPacks = kLength / 8;
  static_assert(kLines * kPacks % kThreads == 0);
  HR_UNROLL
  for (int first = 0; first < kLines * kPacks; first += kThreads) {
    const int pack = first + static_cast<int>(threadIdx.x), own_line = pack / kPacks, own_column = pack % kPacks * 8;
    const bool there = line + own_line < lines && column + own_column < length;
    begin_copy(tile + own_line * (kLength + kMmaGap) + own_column,
               there ? from + (line + own_line) * step + column + own_column : from, there);
  }
}

// A block's tile of C: kWarpRows x kWarpCols warps with M x N products of 16 x 8 each.
template <bool kATransposed, bool kBTransposed, int kWarpRows, int kWarpCols, int M, int N>
struct MmaTile {
  static constexpr int kThreads = kWarpRows * kWarpCols * kWarp;
  static constexpr int kRows = kWarpRows * M * 16, kCols = kWarpCols * N * 8;
  static constexpr int kALines = kATransposed ? kMmaSteps : kRows, kALength = kATransposed ? kRows : kMmaSteps;
  static constexpr int kBLines = kBTransposed ? kCols : kMmaSteps, kBLength = kBTransposed ? kMmaSteps : kCols;
  static constexpr int kAStride = kALength + kMmaGap, kBStride = kBLength + kMmaGap;
  static constexpr int kAElements = kALines * kAStride, kPart = kAElements + kBLines * kBStride;
  static constexpr int64_t kSharedBytes = int64_t{kMmaParts} * kPart * 2;

  HR_DEVICE static void begin_part(Bf16* shared, const MmaOperands& p, int row, int col, int index) {
    Bf16* const a = shared + index % kMmaParts * kPart;
    const int step = index * kMmaSteps;
    if (kATransposed)
      begin_tile<kALines, kALength, kThreads>(a, p.a, p.a_step, step, p.depth, row, p.rows);
    else
      begin_tile<kALines, kALength, kThreads>(a, p.a, p.a_step, row, p.rows, step, p.depth);
    if (kBTransposed)
      begin_tile<kBLines, kBLength, kThreads>(a + kAElements, p.b, p.b_step, col, p.cols, step, p.depth);
    else
      begin_tile<kBLines, kBLength, kThreads>(a + kAElements, p.b, p.b_step, step, p.depth, col, p.cols);
  }

  // Rows `row` .. `row` + 15 and steps `step` .. `step` + 15 of A's tile as a left operand.
  HR_DEVICE static void load_left(uint32_t (&left)[4], const Bf16* a, int row, int step) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp, matrix = lane / 8;
    if (kATransposed)
      load_matrices_transposed(left, a + (step + lane % 8 + matrix / 2 * 8) * kAStride + row + matrix % 2 * 8);
    else
      load_matrices(left, a + (row + lane % 8 + matrix % 2 * 8) * kAStride + step + matrix / 2 * 8);
  }
  // Columns `col` .. `col` + 15 of B's tile as two right operands.
  HR_DEVICE static void load_right(uint32_t (&right)[4], const Bf16* b, int col, int step) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp, matrix = lane / 8;
    if (kBTransposed)
      load_matrices(right, b + (col + lane % 8 + matrix / 2 * 8) * kBStride + step + matrix % 2 * 8);
    else
      load_matrices_transposed(right, b + (step + lane % 8 + matrix % 2 * 8) * kBStride + col + matrix / 2 * 8);
  }

  HR_DEVICE static void multiply(float (&sums)[M][N][4], const Bf16* part, int row, int col) {
    HR_UNROLL
    for (int step = 0; step < kMmaSteps; step += 16) {
      uint32_t left[M][4];
      HR_UNROLL
      for (int m = 0; m < M; ++m) load_left(left[m], part, row + 16 * m, step);
      HR_UNROLL
      for (int n = 0; n < N; n += 2) {
        uint32_t right[4];
        load_right(right, part + kAElements, col + 8 * n, step);
        HR_UNROLL
        for (int m = 0; m < M; ++m) {
          mma_m16n8k16(sums[m][n], left[m], right[0], right[1]);
          mma_m16n8k16(sums[m][n + 1], left[m], right[2], right[3]);
        }
      }
    }
  }
};

template <typename Tile, int M, int N, typename R>
HR_DEVICE void mma_product(const MmaOperands& p, const MmaResult<R>& c, int warp_row, int warp_col) {
  HR_DYNAMIC_SHARED(Bf16, shared);
  const int row = static_cast<int>(blockIdx.y) * Tile::kRows, col = static_cast<int>(blockIdx.x) * Tile::kCols;
  const int parts = (p.depth + kMmaSteps - 1) / kMmaSteps;
  float sums[M][N][4] = {};
  for (int part = 0; part < kMmaParts - 1; ++part) {
    if (part < parts) Tile::begin_part(shared, p, row, col, part);
    end_copy_group();
  }
  for (int part = 0; part < parts; ++part) {
    await_copies<kMmaParts - 2>();
    __syncthreads();  // the part is there for all, and all are done with the one whose place the next takes
    if (part + kMmaParts - 1 < parts) Tile::begin_part(shared, p, row, col, part + kMmaParts - 1);
    end_copy_group();
    Tile::multiply(sums, shared + part % kMmaParts * Tile::kPart, warp_row, warp_col);
  }
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  HR_UNROLL
  for (int m = 0; m < M; ++m) {
    HR_UNROLL
    for (int n = 0; n < N; ++n) {
      HR_UNROLL
      for (int i = 0; i < 4; ++i)
        c.put(row + warp_row + 16 * m + lane / 4 + i / 2 * 8, col + warp_col + 8 * n + lane % 4 * 2 + i % 2,
              sums[m][n][i]);
    }
  }
}

// Eight warps on 128 x 128, or four on 64 x 64.
template <typename R, bool kATransposed, bool kBTransposed, bool kBig>
__global__ __launch_bounds__(kBig ? 256 : 128, 2) void product_mma(MmaOperands p, MmaResult<R> c) {
#ifdef HR_HAS_MMA
  constexpr int kWarpCols = kBig ? 4 : 2, M = kBig ? 4 : 2, N = 4;
  using Tile = MmaTile<kATransposed, kBTransposed, 2, kWarpCols, M, N>;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  mma_product<Tile, M, N>(p, c, warp / kWarpCols * 16 * M, warp % kWarpCols * 8 * N);
#else
  __trap();
#endif
}

#ifdef __CUDACC_RTC__
#define HR_MMA(R, A, B)                                                           \
  template __global__ void product_mma<R, A, B, true>(MmaOperands, MmaResult<R>); \
  template __global__ void product_mma<R, A, B, false>(MmaOperands, MmaResult<R>)
HR_MMA(float, false, false);
HR_MMA(float, false, true);
HR_MMA(float, true, false);
HR_MMA(Bf16, false, false);
HR_MMA(Bf16, false, true);
HR_MMA(Bf16, true, false);
#else
namespace {

template <typename R, bool kATransposed, bool kBTransposed>
void launch_mma(const DeviceProduct& product, int multiprocessors, CudaStream stream) {
  using Big = MmaTile<kATransposed, kBTransposed, 2, 4, 4, 4>;
  using Small = MmaTile<kATransposed, kBTransposed, 2, 2, 2, 4>;
  const MmaOperands p{static_cast<const Bf16*>(product.a),
                      static_cast<const Bf16*>(product.b),
                      product.a_step,
                      product.b_step,
                      static_cast<int>(product.rows),
                      static_cast<int>(product.cols),
                      static_cast<int>(product.depth)};
  const MmaResult<R> c{
      static_cast<R*>(product.c), product.bias, static_cast<const R*>(product.addend), p.rows, p.cols, product.c_step};
  const auto tiles = [&](int rows, int cols) {
    return Grid{(product.cols + cols - 1) / cols, (product.rows + rows - 1) / rows};
  };
  // Small tiles where large ones would leave multiprocessors idle; a sum has the same order in both.
  Grid grid = tiles(Big::kRows, Big::kCols);
  const bool big = grid.x * grid.y >= multiprocessors;
  if (!big) grid = tiles(Small::kRows, Small::kCols);
  grid.block = big ? Big::kThreads : Small::kThreads;
  grid.shared_bytes = big ? Big::kSharedBytes : Small::kSharedBytes;
  launch(big ? product_mma<R, kATransposed, kBTransposed, true> : product_mma<R, kATransposed, kBTransposed, false>,
         grid, stream, p, c);
}

template <typename R>
void launch_mma_layout(const DeviceProduct& product, int multiprocessors, CudaStream stream) {
  if (product.a_transposed)
    launch_mma<R, true, false>(product, multiprocessors, stream);
  else if (product.b_transposed)
    launch_mma<R, false, true>(product, multiprocessors, stream);
  else
    launch_mma<R, false, false>(product, multiprocessors, stream);
}

}  // namespace

int64_t product_mma_shared() { return MmaTile<false, true, 2, 4, 4, 4>::kSharedBytes; }

void launch_product_mma(const DeviceProduct& product, int multiprocessors, CudaStream stream) {
  if (product.result == FloatType::f32)
    launch_mma_layout<float>(product, multiprocessors, stream);
  else
    launch_mma_layout<Bf16>(product, multiprocessors, stream);
}
#endif

}  // namespace headroom::cuda
