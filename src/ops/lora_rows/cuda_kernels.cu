// Device code of lora_rows: one warp per row and rank, then one thread per element of the result.
#include "ops/lora_rows/cuda_kernels.h"

#include "ops/cuda/elements.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"

namespace headroom::cuda {

HR_DEVICE bool has_slot(const LoraRowsArgs& args, int64_t row) {
  return args.slots[row] >= 0 && args.slots[row] < args.slot_count;
}

template <typename X, typename M>
__global__ void lora_narrow(LoraRowsArgs args) {
  const int64_t item = blockIdx.x, row = quotient(item, args.rank), k = item - row * args.rank;
  if (!has_slot(args, row)) return;  // for all threads of the block
  const int64_t slot = args.slots[row];
  const X* const x = static_cast<const X*>(args.x) + row * args.ins;
  const M* const a = static_cast<const M*>(args.a) + (slot * args.rank + k) * args.ins;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < args.ins; i += kWarp) sum += widen(x[i]) * widen(a[i]);
  sum = reduce_warp(sum, Sum());
  if (threadIdx.x == 0) args.narrow[item] = args.scales[slot] * sum;
}

template <typename M, typename Y>
__global__ void lora_widen(LoraRowsArgs args) {
  for (int64_t item = first_index(); item < args.rows * args.outs; item += index_stride()) {
    const int64_t row = quotient(item, args.outs), out = item - row * args.outs;
    const Y before = static_cast<const Y*>(args.y)[item];
    Y* const result = static_cast<Y*>(args.result) + item;
    if (!has_slot(args, row)) {
      *result = before;
      continue;
    }
    const M* const b = static_cast<const M*>(args.b) + args.slots[row] * args.rank * args.outs + out;
    const float* const narrow_row = args.narrow + row * args.rank;
    float sum = 0;
    for (int64_t k = 0; k < args.rank; ++k) sum += narrow_row[k] * widen(b[k * args.outs]);
    *result = narrow<Y>(widen(before) + sum);
  }
}

#ifdef __CUDACC_RTC__
#define HR_LORA(A, B)                                       \
  template __global__ void lora_narrow<A, B>(LoraRowsArgs); \
  template __global__ void lora_widen<A, B>(LoraRowsArgs);
HR_LORA(float, float)
HR_LORA(float, Bf16)
HR_LORA(float, Half)
HR_LORA(Bf16, float)
HR_LORA(Half, float)
HR_LORA(Bf16, Bf16)
HR_LORA(Half, Half)
#else
void launch_lora_rows(FloatType x, FloatType matrices, FloatType y, const LoraRowsArgs& args, int multiprocessors,
                      CudaStream stream) {
  with_float_types(x, matrices, [&](auto x_zero, auto matrix_zero) {
    Grid grid;
    grid.x = args.rows * args.rank;
    grid.block = kWarp;
    launch(lora_narrow<decltype(x_zero), decltype(matrix_zero)>, grid, stream, args);
  });
  with_float_types(matrices, y, [&](auto matrix_zero, auto y_zero) {
    launch(lora_widen<decltype(matrix_zero), decltype(y_zero)>, grid_over(args.rows * args.outs, multiprocessors),
           stream, args);
  });
}
#endif

}  // namespace headroom::cuda
