// The experts' products in bf16 on tensor cores, one block per tile of an expert's result. The device reads where each
// expert's rows start; blocks beyond the routing's last tile do nothing.
#include "ops/cuda/launch.cuh"
#include "ops/cuda/mma_product.cuh"
#include "ops/moe_linear/cuda_expert.cuh"
#include "ops/moe_linear/cuda_kernels.h"

namespace headroom::cuda {

// Eight warps for 128 x 128, or four for 64 x 128: each warp has 64 x 32 in both.
template <ExpertProduct kProduct, bool kTall>
using ExpertMmaTile = MmaTile<!kAlongDepthA<kProduct>, kAlongDepthB<kProduct>, kTall ? 2 : 1, 4, 4, 4>;

template <ExpertProduct kProduct, typename R, bool kTall>
__global__ void __launch_bounds__(kTall ? 256 : 128, kTall ? 2 : 4) expert_mma(ExpertArgs args) {
#ifdef HR_HAS_MMA
  HR_DYNAMIC_SHARED(Bf16, shared);
  using Tile = ExpertMmaTile<kProduct, kTall>;
  const ExpertTile<Bf16> tile = expert_tile<kProduct, Bf16>(args, Tile::kRows, Tile::kCols);
  if (tile.rows == 0) return;  // for all threads of the block
  const MmaOperands operands{tile.a.data, tile.b.data, tile.a.stride, tile.b.stride, tile.rows, tile.cols, tile.depth};
  const R* const addend = args.addend ? static_cast<const R*>(args.addend) + tile.to : nullptr;
  const MmaResult<R> result{static_cast<R*>(args.result) + tile.to, nullptr, addend, tile.rows, tile.cols, tile.stride};
  Tile::multiply(shared, operands, result, 0, 0);
#else
  __trap();
#endif
}

#ifdef __CUDACC_RTC__
#define HR_EXPERT_MMA(kTall)                                                                    \
  template __global__ void expert_mma<ExpertProduct::forward, float, kTall>(ExpertArgs);        \
  template __global__ void expert_mma<ExpertProduct::forward, Bf16, kTall>(ExpertArgs);         \
  template __global__ void expert_mma<ExpertProduct::input_gradient, float, kTall>(ExpertArgs); \
  template __global__ void expert_mma<ExpertProduct::input_gradient, Bf16, kTall>(ExpertArgs);
HR_EXPERT_MMA(true)
HR_EXPERT_MMA(false)
template __global__ void expert_mma<ExpertProduct::weight_gradient, float, true>(ExpertArgs);
#else
namespace {

template <ExpertProduct kProduct, typename R, bool kTall>
void launch_tiles(const ExpertArgs& args, CudaStream stream) {
  using Tile = ExpertMmaTile<kProduct, kTall>;
  Grid grid;
  grid.x = expert_blocks(args, Tile::kRows, Tile::kCols);
  grid.block = Tile::kThreads;
  grid.shared_bytes = Tile::kSharedBytes;
  launch(expert_mma<kProduct, R, kTall>, grid, stream, args);
}

// On average the last tile of an expert is half empty, so low tiles are used when an expert has few. Sums have the same
// order in both.
template <ExpertProduct kProduct>
void launch_rows(const ExpertArgs& args, CudaStream stream) {
  constexpr int64_t kRowsForTall = 256;
  const bool tall = args.rows >= kRowsForTall * args.experts;
  const auto launch_rows_of = [&](auto zero) {
    using R = decltype(zero);
    if (tall)
      launch_tiles<kProduct, R, true>(args, stream);
    else
      launch_tiles<kProduct, R, false>(args, stream);
  };
  if (args.result_type == FloatType::f32)
    launch_rows_of(float{});
  else
    launch_rows_of(Bf16{});
}

}  // namespace

int64_t expert_mma_shared() { return ExpertMmaTile<ExpertProduct::forward, true>::kSharedBytes; }

void launch_expert_mma(const ExpertArgs& args, CudaStream stream) {
  if (args.product == ExpertProduct::weight_gradient)
    launch_tiles<ExpertProduct::weight_gradient, float, true>(args, stream);
  else if (args.product == ExpertProduct::forward)
    launch_rows<ExpertProduct::forward>(args, stream);
  else
    launch_rows<ExpertProduct::input_gradient>(args, stream);
}
#endif

}  // namespace headroom::cuda
