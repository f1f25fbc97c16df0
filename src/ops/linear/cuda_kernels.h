// Launchers of the device code of products and of sums over rows.
#pragma once

#include "ops/cuda/launch.h"

namespace headroom::cuda {

// C[rows, cols] = A B [+ bias] [+ addend]. A is stored [rows, depth] or, transposed, [depth, rows]; B [depth, cols] or
// [cols, depth]; the addend is stored as C is, both of the result's type. Sums in f32, one after the other along the
// depth.
struct DeviceProduct {
  FloatType operand = FloatType::f32;
  FloatType result = FloatType::f32;  // f32, or the operand's
  bool a_transposed = false;
  bool b_transposed = false;  // not together with a_transposed
  int64_t rows = 0, cols = 0, depth = 0;
  const void* a = nullptr;
  int64_t a_step = 0;  // elements from a stored row to the next
  const void* b = nullptr;
  int64_t b_step = 0;
  void* c = nullptr;
  int64_t c_step = 0;
  const float* bias = nullptr;   // [cols], or null
  const void* addend = nullptr;  // may be c; or null
};

// By tiles, any size; rows, cols and depth are below 2^31.
void launch_product(const DeviceProduct& product, int multiprocessors, CudaStream stream);

// By tiles on tensor cores: bf16 operands whose stored rows are multiples of eight elements long and apart, aligned to
// 16 bytes; compute capability 8.0.
void launch_product_mma(const DeviceProduct& product, int multiprocessors, CudaStream stream);
// Dynamic shared memory of a block, at most.
int64_t product_mma_shared();

// The rows that launch_row_product() takes.
constexpr int kFewRows = 8;
// The same for at most kFewRows rows of a dense A [rows, depth] and a dense C: B is read once, in the order in which it
// lies.
void launch_row_product(const DeviceProduct& product, CudaStream stream);

// sums[col] [+]= sum of x[rows, cols] over the rows, in an order that only their numbers decide. Rows of x are `step`
// elements apart. `scratch`: sum_scratch_bytes(rows, cols), aligned to 4 bytes; null where that is none.
void launch_sum_over_rows(FloatType type, const void* x, int64_t rows, int64_t cols, int64_t step, float* sums,
                          bool overwrite, void* scratch, CudaStream stream);

}  // namespace headroom::cuda
