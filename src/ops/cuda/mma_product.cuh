// Products of bf16 matrices on tensor cores, a tile per block, from sm_80 on. Parts of the depth are copied to shared
// memory two ahead of the one being multiplied. Three parts of 128 x 128 x 32 take 48 KiB: two blocks fit on a
// multiprocessor of every such device, and each of their sixteen warps reads 6 KiB of fragments for 64 KiFMA.
#pragma once

#include "ops/cuda/elements.cuh"
#include "ops/cuda/mma.cuh"

namespace headroom::cuda {

constexpr int kMmaSteps = 32;  // steps of the depth in a part
constexpr int kMmaParts = 3;   // in shared memory

// C[rows, cols] = A B over the depth. a_step and b_step are the distances between stored rows.
struct MmaOperands {
  const Bf16* a;
  const Bf16* b;
  int64_t a_step, b_step;
  int rows, cols, depth;
};

// C[rows, cols] = sums [+ bias] [+ addend]; the addend has the row stride of C.
template <typename R>
struct MmaResult {
  R* at;
  const float* bias;
  const R* addend;
  int rows, cols;
  int64_t step;

  // Sums [n][i] in the layout of a warp's product: i = 0, 1 are in columns col + 8 n + i of `row`, and i = 2, 3 are
  // eight rows below; `col` is even.
  template <int N>
  HR_DEVICE void put(int row, int col, float (&sums)[N][4]) const {
    if (bias) add_bias(col, sums);
    if ((cols | step) % 2 == 0)
      put_runs<2>(row, col, sums);
    else
      put_runs<1>(row, col, sums);
  }

 private:
  template <int N>
  HR_DEVICE void add_bias(int col, float (&sums)[N][4]) const {
    HR_UNROLL
    for (int n = 0; n < N; ++n) {
      HR_UNROLL
      for (int i = 0; i < 4; ++i) sums[n][i] += bias[clamp_index(col + 8 * n + i % 2, cols)];
    }
  }

  HR_DEVICE bool has(int row, int col) const { return row < rows && col < cols; }

  // All loads are issued before the first store; they could not be moved across it, because the addend may be C.
  template <int kRun, int N>
  HR_DEVICE void put_runs(int row, int col, float (&sums)[N][4]) const {
    if (addend) {
      Raw<R, kRun> added[N][4 / kRun];
      HR_UNROLL
      for (int n = 0; n < N; ++n) {
        HR_UNROLL
        for (int i = 0; i < 4; i += kRun) {
          const int own_row = row + i / 2 * 8, own_col = col + 8 * n + i % 2;
          added[n][i / kRun] = load_raw<kRun>(addend + (has(own_row, own_col) ? own_row * step + own_col : 0));
        }
      }
      HR_UNROLL
      for (int n = 0; n < N; ++n) {
        HR_UNROLL
        for (int i = 0; i < 4; ++i) sums[n][i] += widen(added[n][i / kRun]).at[i % kRun];
      }
    }
    HR_UNROLL
    for (int n = 0; n < N; ++n) {
      HR_UNROLL
      for (int i = 0; i < 4; i += kRun) {
        const int own_row = row + i / 2 * 8, own_col = col + 8 * n + i % 2;
        Floats<kRun> run;
        HR_UNROLL
        for (int j = 0; j < kRun; ++j) run.at[j] = sums[n][i + j];
        if (has(own_row, own_col)) store_floats<kRun>(at + own_row * step + own_col, run);
      }
    }
  }
};

// Offset of element `column`, the first of a pack of eight, in a tile of lines of kLength elements. Packs are permuted
// within a line so that those of one column in eight consecutive lines are in different banks.
template <int kLength>
HR_DEVICE int tile_place(int line, int column) {
  constexpr int kPacks = kLength / 8, kSpan = kPacks < 8 ? 8 / kPacks : 1;  // lines that cover all banks
  static_assert(kPacks % 8 == 0 || 8 % kPacks == 0);
  constexpr int kExchanged = 8 / kSpan;
  return line * kLength + (column / 8 ^ line / kSpan % kExchanged) * 8;
}

// A thread's copies of an operand's parts: the packs at the same place of every kPass-th line. Stored lines are rows or
// columns of C with the depth along them (kAlongDepth), or the other way round. Elements outside read as zero.
template <bool kAlongDepth, int kOuter, int kThreads>
class PartCopies {
 public:
  static constexpr bool kStoredAlongDepth = kAlongDepth;
  static constexpr int kLines = kAlongDepth ? kOuter : kMmaSteps, kLength = kAlongDepth ? kMmaSteps : kOuter;

  HR_DEVICE PartCopies(const Bf16* from, int64_t step, int outer, int depth)
      : from_(from + own_line() * step + own_column()), step_(step), outer_(outer), depth_(depth) {}

  // Starts to copy the next part to [kLines][kLength].
  HR_DEVICE void begin(Bf16* tile) {
    const Bf16* from = from_;
    HR_UNROLL
    for (int line = 0; line < kLines; line += kPass) {
      const int own = own_line() + line;
      const bool there = kAlongDepth ? own < outer_ && own_column() < depth_ : own < depth_ && own_column() < outer_;
      begin_copy(tile + tile_place<kLength>(own_line(), own_column()) + line * kLength, from, there);
      from += kPass * step_;
    }
    from_ = kAlongDepth ? from_ + kMmaSteps : from;
    depth_ -= kMmaSteps;
  }

 private:
  static constexpr int kPacks = kLength / 8, kPass = kThreads / kPacks;
  static_assert(kThreads % kPacks == 0 && kLines % kPass == 0 && kPass % 8 == 0);  // tile_place() treats lines alike

  HR_DEVICE static int own_line() { return static_cast<int>(threadIdx.x) / kPacks; }
  HR_DEVICE static int own_column() { return static_cast<int>(threadIdx.x) % kPacks * 8; }

  const Bf16* from_;
  int64_t step_;
  int outer_, depth_;
};

// A block's tile of C: kWarpRows x kWarpCols warps with M x N products of 16 x 8 each. A is stored as [rows, depth] or,
// transposed, [depth, rows]; B as [depth, cols] or [cols, depth]. The length and the stride of their stored rows are
// multiples of eight elements, and they are aligned to 16 bytes.
template <bool kATransposed, bool kBTransposed, int kWarpRows, int kWarpCols, int M, int N>
struct MmaTile {
  static constexpr int kThreads = kWarpRows * kWarpCols * kWarp;
  static constexpr int kRows = kWarpRows * M * 16, kCols = kWarpCols * N * 8;
  using CopiesOfA = PartCopies<!kATransposed, kRows, kThreads>;
  using CopiesOfB = PartCopies<kBTransposed, kCols, kThreads>;
  static constexpr int kAElements = CopiesOfA::kLines * CopiesOfA::kLength;
  static constexpr int kPart = kAElements + CopiesOfB::kLines * CopiesOfB::kLength;
  static constexpr int64_t kSharedBytes = int64_t{kMmaParts} * kPart * 2;

  // Stores C's tile that starts at (row, col). The whole block calls it with the same arguments; `shared` has
  // kSharedBytes. Sums run along the depth, sixteen steps at a time, whatever the tile.
  template <typename R>
  HR_DEVICE static void multiply(Bf16* shared, const MmaOperands& p, const MmaResult<R>& c, int row, int col) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
    const int warp_row = warp / kWarpCols * 16 * M, warp_col = warp % kWarpCols * 8 * N;
    const int parts = (p.depth + kMmaSteps - 1) / kMmaSteps;
    CopiesOfA a(p.a + (kATransposed ? row : row * p.a_step), p.a_step, p.rows - row, p.depth);
    CopiesOfB b(p.b + (kBTransposed ? col * p.b_step : col), p.b_step, p.cols - col, p.depth);
    const auto begin_part = [&](int part) {
      if (part < parts) {
        Bf16* const to = shared + part % kMmaParts * kPart;
        a.begin(to);
        b.begin(to + kAElements);
      }
      end_copy_group();
    };
    float sums[M][N][4] = {};
    for (int part = 0; part < kMmaParts - 1; ++part) begin_part(part);
    for (int part = 0; part < parts; ++part) {
      await_copies<kMmaParts - 2>();
      __syncthreads();  // the part has arrived for all, and all are done with the one that will be overwritten
      begin_part(part + kMmaParts - 1);
      multiply_part(sums, shared + part % kMmaParts * kPart, warp_row, warp_col);
    }
    HR_UNROLL
    for (int m = 0; m < M; ++m) c.put(row + warp_row + 16 * m + lane / 4, col + warp_col + lane % 4 * 2, sums[m]);
  }

 private:
  // The 16 x 16 elements of an operand's tile that start at (outer, step). With kOuterFirst they are a left operand's
  // four matrices, the second one eight rows further; else those of two right operands, the second one eight steps
  // further.
  template <typename Copies, bool kOuterFirst>
  HR_DEVICE static void load_fragment(uint32_t (&m)[4], const Bf16* tile, int outer, int step) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp, matrix = lane / 8;
    outer += (kOuterFirst ? matrix % 2 : matrix / 2) * 8;
    step += (kOuterFirst ? matrix / 2 : matrix % 2) * 8;
    if (Copies::kStoredAlongDepth)
      load_matrices(m, tile + tile_place<Copies::kLength>(outer + lane % 8, step));
    else
      load_matrices_transposed(m, tile + tile_place<Copies::kLength>(step + lane % 8, outer));
  }

  HR_DEVICE static void multiply_part(float (&sums)[M][N][4], const Bf16* part, int row, int col) {
    HR_UNROLL
    for (int step = 0; step < kMmaSteps; step += 16) {
      uint32_t left[M][4];
      HR_UNROLL
      for (int m = 0; m < M; ++m) load_fragment<CopiesOfA, true>(left[m], part, row + 16 * m, step);
      HR_UNROLL
      for (int n = 0; n < N; n += 2) {
        uint32_t right[4];
        load_fragment<CopiesOfB, false>(right, part + kAElements, col + 8 * n, step);
        HR_UNROLL
        for (int m = 0; m < M; ++m) {
          mma_m16n8k16(sums[m][n], left[m], right[0], right[1]);
          mma_m16n8k16(sums[m][n + 1], left[m], right[2], right[3]);
        }
      }
    }
  }
};

}  // namespace headroom::cuda
