// Launchers of the device code of products and of sums over rows.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// C[rows, cols] = A B [+ bias] [+ addend]. A is stored as [rows, depth] or, transposed, [depth, rows]; B as [depth,
// cols] or [cols, depth]; the addend is stored like C, and both have the result's type. Sums are in f32, in order along
// the depth.
struct DeviceProduct {
  FloatType operand = FloatType::f32;
  FloatType result = FloatType::f32;  // f32, or the operands' type
  bool a_transposed = false;
  bool b_transposed = false;  // not together with a_transposed
  int64_t rows = 0, cols = 0, depth = 0;
  const void* a = nullptr;
  int64_t a_step = 0;  // elements from one stored row to the next
  const void* b = nullptr;
  int64_t b_step = 0;
  void* c = nullptr;
  int64_t c_step = 0;
  const float* bias = nullptr;   // [cols], or null
  const void* addend = nullptr;  // may be c; or null
};

// In tiles, for any size; rows, cols and depth are below 2^31.
void launch_product(const DeviceProduct& product, int multiprocessors, CudaStream stream);

// In tiles on tensor cores: bf16 operands aligned to 16 bytes, whose stored rows have lengths and strides that are
// multiples of eight elements; compute capability 8.0.
void launch_product_mma(const DeviceProduct& product, int multiprocessors, CudaStream stream);
// Maximum dynamic shared memory of a block.
int64_t product_mma_shared();

// The most rows that launch_row_product() supports.
constexpr int kFewRows = 8;
// The same for at most kFewRows rows of a dense A [rows, depth] and a dense C: B is read once, in memory order.
void launch_row_product(const DeviceProduct& product, CudaStream stream);

// sums[col] [+]= sum of x[rows, cols] over the rows, in an order that depends only on the numbers of rows and columns.
// Rows of x are `step` elements apart. `scratch`: sum_scratch_bytes(rows, cols), aligned to 4 bytes; null if that is 0.
void launch_sum_over_rows(FloatType type, const void* x, int64_t rows, int64_t cols, int64_t step, float* sums,
                          bool overwrite, void* scratch, CudaStream stream);

}  // namespace headroom::cuda
