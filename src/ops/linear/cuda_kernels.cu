// Products in tiles in shared memory, for every architecture.
#include "ops/linear/cuda_kernels.h"

#include "ops/cuda/launch.cuh"

// Before a loop to unroll by two: with more, the loads ahead would not fit into the registers.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define HR_UNROLL_TWO _Pragma("unroll 2")
#else
#define HR_UNROLL_TWO
#endif

namespace headroom::cuda {

constexpr int kSteps = 16;          // steps of the depth in shared memory at a time
constexpr int kTileThreads = 256;   // 16 x 16
constexpr int kGroup = 4;           // adjacent elements of a tile's row or column per thread
constexpr int kBetweenGroups = 64;  // distance between a thread's groups
constexpr int kBigTile = 128;       // 64 sums per thread: four 16-byte loads from shared memory feed 64 multiply-adds
constexpr int kSmallTile = 64;      // 16 sums per thread, and four times as many blocks

// Rows of A or columns of B, called lines here. `deep`: a line is contiguous in memory; otherwise a step of the depth
// is.
template <typename T>
struct ProductLines {
  const T* at;
  int64_t step;  // elements from one stored row to the next
  int count;
  bool packed;  // four elements of a stored row can be loaded together
};

// Carries a block's part of an operand from memory through registers to shared memory.
template <typename T, int kLines, bool kDeep>
struct ProductCarrier {
  static constexpr int kPacks = kLines * kSteps / kGroup / kTileThreads;
  float held[kPacks][kGroup];

  // Where this thread's pack number `pack` starts in the tile. Neighbouring threads load neighbouring memory.
  HR_DEVICE static void place(int pack, int* line, int* step) {
    const int index = static_cast<int>(threadIdx.x) + pack * kTileThreads;
    if (kDeep) {
      *line = index / (kSteps / kGroup);
      *step = index % (kSteps / kGroup) * kGroup;
    } else {
      *line = index % (kLines / kGroup) * kGroup;
      *step = index / (kLines / kGroup);
    }
  }

  // Elements outside the operand read as zero.
  HR_DEVICE void fetch(const ProductLines<T>& lines, int first_line, int first_step, int depth) {
    HR_UNROLL
    for (int pack = 0; pack < kPacks; ++pack) {
      int tile_line, tile_step;
      place(pack, &tile_line, &tile_step);
      const int line = first_line + tile_line, step = first_step + tile_step;
      const int left = kDeep ? (line < lines.count ? depth - step : 0) : (step < depth ? lines.count - line : 0);
      const T* const from = lines.at + (kDeep ? line : step) * lines.step + (kDeep ? step : line);
      if (lines.packed && left >= kGroup) {
        const Pack<T, kGroup> found = *reinterpret_cast<const Pack<T, kGroup>*>(from);
        HR_UNROLL
        for (int i = 0; i < kGroup; ++i) held[pack][i] = widen(found.at[i]);
      } else {
        HR_UNROLL
        for (int i = 0; i < kGroup; ++i) held[pack][i] = i < left ? widen(from[i]) : 0.0f;
      }
    }
  }

  HR_DEVICE void put(float (*tile)[kLines + kGroup]) const {
    HR_UNROLL
    for (int pack = 0; pack < kPacks; ++pack) {
      int line, step;
      place(pack, &line, &step);
      HR_UNROLL
      for (int i = 0; i < kGroup; ++i)
        if (kDeep)
          tile[step + i][line] = held[pack][i];
        else
          tile[step][line + i] = held[pack][i];
    }
  }
};

// Where a block's sums are stored.
template <typename R>
struct ProductResult {
  R* at;
  const float* bias;
  const R* addend;
  int rows, cols;
  int64_t step;  // elements from one row to the next
  bool packed;

  // Stores four neighbouring elements of a row.
  HR_DEVICE void put(int row, int col, const float* sums) const {
    if (row >= rows || col >= cols) return;
    const int64_t to = row * step + col;
    float total[kGroup];
    HR_UNROLL
    for (int i = 0; i < kGroup; ++i) total[i] = sums[i] + (bias && col + i < cols ? bias[col + i] : 0.0f);
    if (packed && col + kGroup <= cols) {
      Pack<R, kGroup> pack;
      if (addend) {
        pack = *reinterpret_cast<const Pack<R, kGroup>*>(addend + to);
        HR_UNROLL
        for (int i = 0; i < kGroup; ++i) total[i] += widen(pack.at[i]);
      }
      HR_UNROLL
      for (int i = 0; i < kGroup; ++i) pack.at[i] = narrow<R>(total[i]);
      *reinterpret_cast<Pack<R, kGroup>*>(at + to) = pack;
      return;
    }
    HR_UNROLL
    for (int i = 0; i < kGroup && col + i < cols; ++i)
      at[to + i] = narrow<R>(total[i] + (addend ? widen(addend[to + i]) : 0.0f));
  }
};

// One block per tile of C. While a step of the depth is multiplied from shared memory, the next one is loaded into
// registers.
template <typename T, typename R, bool kATransposed, bool kBTransposed, int kTile>
__global__ __launch_bounds__(kTileThreads, 2) void product_tiles(ProductLines<T> a, ProductLines<T> b,
                                                                 ProductResult<R> c, int depth) {
  constexpr int kGroups = kTile / kBetweenGroups;
  __align__(16) __shared__ float a_tile[kSteps][kTile + kGroup];
  __align__(16) __shared__ float b_tile[kSteps][kTile + kGroup];
  const int first_row = static_cast<int>(blockIdx.y) * kTile, first_col = static_cast<int>(blockIdx.x) * kTile;
  const int row = static_cast<int>(threadIdx.x) / 16 * kGroup, col = static_cast<int>(threadIdx.x) % 16 * kGroup;
  ProductCarrier<T, kTile, !kATransposed> next_a;
  ProductCarrier<T, kTile, kBTransposed> next_b;
  float sums[kGroups * kGroup][kGroups * kGroup] = {};
  next_a.fetch(a, first_row, 0, depth);
  next_b.fetch(b, first_col, 0, depth);
  for (int begin = 0; begin < depth; begin += kSteps) {
    next_a.put(a_tile);
    next_b.put(b_tile);
    __syncthreads();
    if (begin + kSteps < depth) {
      next_a.fetch(a, first_row, begin + kSteps, depth);
      next_b.fetch(b, first_col, begin + kSteps, depth);
    }
    HR_UNROLL_TWO
    for (int step = 0; step < kSteps; ++step) {
      Pack<float, kGroup> left[kGroups], right[kGroups];
      HR_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        left[g] = *reinterpret_cast<const Pack<float, kGroup>*>(&a_tile[step][row + g * kBetweenGroups]);
        right[g] = *reinterpret_cast<const Pack<float, kGroup>*>(&b_tile[step][col + g * kBetweenGroups]);
      }
      HR_UNROLL
      for (int i = 0; i < kGroups * kGroup; ++i) {
        HR_UNROLL
        for (int j = 0; j < kGroups * kGroup; ++j)
          sums[i][j] += left[i / kGroup].at[i % kGroup] * right[j / kGroup].at[j % kGroup];
      }
    }
    __syncthreads();
  }
  HR_UNROLL
  for (int i = 0; i < kGroups * kGroup; ++i) {
    HR_UNROLL
    for (int g = 0; g < kGroups; ++g)
      c.put(first_row + row + i / kGroup * kBetweenGroups + i % kGroup, first_col + col + g * kBetweenGroups,
            &sums[i][g * kGroup]);
  }
}

#ifdef __CUDACC_RTC__
#define HR_TILES(T, R, A, B)                                                                                         \
  template __global__ void product_tiles<T, R, A, B, kBigTile>(ProductLines<T>, ProductLines<T>, ProductResult<R>,   \
                                                               int);                                                 \
  template __global__ void product_tiles<T, R, A, B, kSmallTile>(ProductLines<T>, ProductLines<T>, ProductResult<R>, \
                                                                 int)
#define HR_LAYOUTS(T, R)        \
  HR_TILES(T, R, false, false); \
  HR_TILES(T, R, false, true);  \
  HR_TILES(T, R, true, false)
HR_LAYOUTS(float, float);
HR_LAYOUTS(Bf16, float);
HR_LAYOUTS(Bf16, Bf16);
HR_LAYOUTS(Half, float);
HR_LAYOUTS(Half, Half);
#else
namespace {

template <typename T>
bool packs_of_four(const void* at, int64_t step) {
  return step % kGroup == 0 && reinterpret_cast<uintptr_t>(at) % (kGroup * sizeof(T)) == 0;
}

int64_t tiles_of(int64_t count, int tile) { return (count + tile - 1) / tile; }

template <typename T, typename R, bool kATransposed, bool kBTransposed>
void launch_tiles(const DeviceProduct& p, int multiprocessors, CudaStream stream) {
  const ProductLines<T> a{static_cast<const T*>(p.a), p.a_step, static_cast<int>(p.rows),
                          packs_of_four<T>(p.a, p.a_step)};
  const ProductLines<T> b{static_cast<const T*>(p.b), p.b_step, static_cast<int>(p.cols),
                          packs_of_four<T>(p.b, p.b_step)};
  const ProductResult<R> c{static_cast<R*>(p.c),
                           p.bias,
                           static_cast<const R*>(p.addend),
                           static_cast<int>(p.rows),
                           static_cast<int>(p.cols),
                           p.c_step,
                           packs_of_four<R>(p.c, p.c_step) && packs_of_four<R>(p.addend, p.c_step)};
  // Use small tiles where large ones would leave multiprocessors idle; sums have the same order in both.
  if (tiles_of(p.rows, kBigTile) * tiles_of(p.cols, kBigTile) >= multiprocessors)
    launch(product_tiles<T, R, kATransposed, kBTransposed, kBigTile>,
           Grid{tiles_of(p.cols, kBigTile), tiles_of(p.rows, kBigTile), 1, kTileThreads, 0}, stream, a, b, c, p.depth);
  else
    launch(product_tiles<T, R, kATransposed, kBTransposed, kSmallTile>,
           Grid{tiles_of(p.cols, kSmallTile), tiles_of(p.rows, kSmallTile), 1, kTileThreads, 0}, stream, a, b, c,
           p.depth);
}

template <typename T, typename R>
void launch_layout(const DeviceProduct& p, int multiprocessors, CudaStream stream) {
  if (p.a_transposed)
    launch_tiles<T, R, true, false>(p, multiprocessors, stream);
  else if (p.b_transposed)
    launch_tiles<T, R, false, true>(p, multiprocessors, stream);
  else
    launch_tiles<T, R, false, false>(p, multiprocessors, stream);
}

}  // namespace

void launch_product(const DeviceProduct& p, int multiprocessors, CudaStream stream) {
  with_product_types(p.operand, p.result,
                     [&](auto t, auto r) { launch_layout<decltype(t), decltype(r)>(p, multiprocessors, stream); });
}
#endif

}  // namespace headroom::cuda
