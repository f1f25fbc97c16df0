// Launchers of the device code of attention_paged and kv_append_paged.
#pragma once

#include "ops/attention/cuda_kernels.h"

namespace headroom::cuda {

// A pool of blocks and their owners; see PagedShape in ops/paged_attention/shape.h for the sizes.
struct PagedTables {
  const int32_t* tables = nullptr;  // [sequences, blocks_each]
  const int32_t* owners = nullptr;  // [rows]
  const int32_t* offset = nullptr;  // [rows]
  int32_t sequences = 0;
  int32_t blocks_each = 0;
  int32_t block_tokens = 1;
  int32_t blocks = 0;  // of the pool
};

// Each of `rows` rows of q [rows, heads * dim] with the keys of its sequence, `at_once` rows at a time, for which
// `partial` has room. Of `sizes` only heads, kv_heads, dim, window, scale and softcap are used.
void launch_attention_paged(FloatType q_type, FloatType kv_type, const AttentionSizes& sizes, const PagedTables& tables,
                            int64_t rows, int64_t at_once, const AttentionArrays& arrays, const DecodeArrays& partial,
                            CudaStream stream);

// Copies row r of k [rows, width] to row slots[r] of the pool [held, width]; rows with slots outside it are dropped.
void launch_kv_append_paged(FloatType k_type, FloatType pool_type, const void* k, void* pool, const int32_t* slots,
                            int64_t rows, int64_t held, int64_t width, int multiprocessors, CudaStream stream);

}  // namespace headroom::cuda
