// Products of bf16 operands on tensor cores, one block per tile of the result.
#include "ops/cuda/launch.cuh"
#include "ops/cuda/mma_product.cuh"
#include "ops/linear/cuda_kernels.h"

namespace headroom::cuda {

// Eight warps for 128 x 128, or four for 64 x 64.
template <bool kATransposed, bool kBTransposed, bool kBig>
using ProductTile = MmaTile<kATransposed, kBTransposed, 2, kBig ? 4 : 2, kBig ? 4 : 2, 4>;

template <typename R, bool kATransposed, bool kBTransposed, bool kBig>
__global__ __launch_bounds__(kBig ? 256 : 128, 2) void product_mma(MmaOperands p, MmaResult<R> c) {
#ifdef HR_HAS_MMA
  HR_DYNAMIC_SHARED(Bf16, shared);
  using Tile = ProductTile<kATransposed, kBTransposed, kBig>;
  Tile::multiply(shared, p, c, static_cast<int>(blockIdx.y) * Tile::kRows, static_cast<int>(blockIdx.x) * Tile::kCols);
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
  using Big = ProductTile<kATransposed, kBTransposed, true>;
  using Small = ProductTile<kATransposed, kBTransposed, false>;
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
  // Use small tiles where large ones would leave multiprocessors idle; sums have the same order in both.
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

int64_t product_mma_shared() { return ProductTile<false, true, true>::kSharedBytes; }

void launch_product_mma(const DeviceProduct& product, int multiprocessors, CudaStream stream) {
  if (product.result == FloatType::f32)
    launch_mma_layout<float>(product, multiprocessors, stream);
  else
    launch_mma_layout<Bf16>(product, multiprocessors, stream);
}
#endif

}  // namespace headroom::cuda
