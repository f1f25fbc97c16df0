// Device code that copies tokens to the rows of their experts and sums the results. One block per token, whose row is
// read once, with 16-byte accesses if the width allows.
#include "ops/cuda/launch.cuh"
#include "ops/cuda/rows.cuh"
#include "ops/moe/cuda_kernels.h"

namespace headroom::cuda {

constexpr int kTokenThreads = 128;

template <typename T, bool kWhole>
__global__ void __launch_bounds__(kTokenThreads) dispatch_rows(CombineArgs args) {
  const int64_t token = blockIdx.x;
  const int32_t* const rows = args.rows + token * args.chosen;
  const T* const from = static_cast<const T*>(args.z) + token * args.width;
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * kRowRun; i < args.width; i += kTokenThreads * kRowRun) {
    const Floats<kRowRun> x = widen(load_row<kWhole, kRowRun>(from, i, args.width));
    for (int slot = 0; slot < args.chosen; ++slot)
      store_row<kWhole, kRowRun>(static_cast<T*>(args.y) + rows[slot] * args.width, i, args.width, x);
  }
}

template <typename T, typename Y, bool kWhole>
__global__ void __launch_bounds__(kTokenThreads) combine_rows(CombineArgs args) {
  const int64_t token = blockIdx.x;
  const int32_t* const rows = args.rows + token * args.chosen;
  const float* const weights = args.weights ? args.weights + token * args.chosen : nullptr;
  Y* const y = static_cast<Y*>(args.y) + token * args.width;
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * kRowRun; i < args.width; i += kTokenThreads * kRowRun) {
    Floats<kRowRun> sum = {};
    if (args.residual)
      sum = widen(load_row<kWhole, kRowRun>(static_cast<const Y*>(args.residual) + token * args.width, i, args.width));
    for (int slot = 0; slot < args.chosen; ++slot) {
      const Floats<kRowRun> part =
          widen(load_row<kWhole, kRowRun>(static_cast<const T*>(args.z) + rows[slot] * args.width, i, args.width));
      const float weight = weights ? weights[slot] : 1.0f;
      HR_UNROLL for (int j = 0; j < kRowRun; ++j) sum.at[j] += weight * part.at[j];
    }
    store_row<kWhole, kRowRun>(y, i, args.width, sum);
  }
}

template <typename T, typename Y, bool kWhole>
__global__ void __launch_bounds__(kTokenThreads) combine_rows_grad(CombineArgs args) {
  __shared__ float slots[2][kWarp];
  const int64_t token = blockIdx.x;
  const Y* const dy = static_cast<const Y*>(args.dy) + token * args.width;
  for (int slot = 0; slot < args.chosen; ++slot) {
    const int64_t pair = token * args.chosen + slot, row = args.rows[pair] * args.width;
    const T* const z = static_cast<const T*>(args.z) + row;
    T* const dz = static_cast<T*>(args.dz) + row;
    const float weight = args.weights[pair];
    float product = 0;
    for (int64_t i = static_cast<int64_t>(threadIdx.x) * kRowRun; i < args.width; i += kTokenThreads * kRowRun) {
      const Floats<kRowRun> grad = widen(load_row<kWhole, kRowRun>(dy, i, args.width));
      const Floats<kRowRun> value = widen(load_row<kWhole, kRowRun>(z, i, args.width));
      Floats<kRowRun> scaled;
      HR_UNROLL for (int j = 0; j < kRowRun; ++j) {
        product += grad.at[j] * value.at[j];
        scaled.at[j] = weight * grad.at[j];
      }
      store_row<kWhole, kRowRun>(dz, i, args.width, scaled);
    }
    product = reduce_block(product, slots[slot % 2], 0.0f, Sum());
    if (threadIdx.x == 0) args.dweights[pair] = product;
  }
}

#ifdef __CUDACC_RTC__
HR_INSTANTIATE_ROWS(combine_rows, CombineArgs)
HR_INSTANTIATE_ROWS(combine_rows_grad, CombineArgs)
template __global__ void dispatch_rows<float, true>(CombineArgs);
template __global__ void dispatch_rows<float, false>(CombineArgs);
template __global__ void dispatch_rows<Bf16, true>(CombineArgs);
template __global__ void dispatch_rows<Half, true>(CombineArgs);
template __global__ void dispatch_rows<Bf16, false>(CombineArgs);
template __global__ void dispatch_rows<Half, false>(CombineArgs);
#else
namespace {

// Launches the variant for the width, with one block per token.
void launch_rows(void (*whole)(CombineArgs), void (*ragged)(CombineArgs), const CombineArgs& args, CudaStream stream) {
  Grid grid;
  grid.x = args.tokens;
  grid.block = kTokenThreads;
  launch(args.width % kRowRun == 0 ? whole : ragged, grid, stream, args);
}

}  // namespace

void launch_dispatch(FloatType type, const CombineArgs& args, CudaStream stream) {
  with_float_type(type, [&](auto zero) {
    using T = decltype(zero);
    launch_rows(dispatch_rows<T, true>, dispatch_rows<T, false>, args, stream);
  });
}

void launch_combine(FloatType z_type, FloatType y_type, const CombineArgs& args, CudaStream stream) {
  with_float_types(z_type, y_type, [&](auto z, auto y) {
    using T = decltype(z);
    using Y = decltype(y);
    launch_rows(combine_rows<T, Y, true>, combine_rows<T, Y, false>, args, stream);
  });
}

void launch_combine_grad(FloatType z_type, FloatType dy_type, const CombineArgs& args, CudaStream stream) {
  with_float_types(z_type, dy_type, [&](auto z, auto dy) {
    using T = decltype(z);
    using Y = decltype(dy);
    launch_rows(combine_rows_grad<T, Y, true>, combine_rows_grad<T, Y, false>, args, stream);
  });
}
#endif

}  // namespace headroom::cuda
