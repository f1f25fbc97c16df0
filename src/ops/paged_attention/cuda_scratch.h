// Scratch of the CUDA kernels of attention_paged, one formula for the plan and for the kernels that carve it.
#pragma once

#include "ops/attention/cuda_scratch.h"
#include "ops/paged_attention/shape.h"

namespace headroom {

// Rows are computed together as far as their partial results fill no more than this, and one at least.
constexpr int64_t kCudaPagedBytes = int64_t{16} << 20;

// A call of `rows` rows as the decoding kernels see it: a batch of one query each.
inline AttentionShape cuda_paged_rows(const PagedShape& paged, int64_t rows) {
  AttentionShape shape;
  shape.batch = rows;
  shape.queries = 1;
  shape.keys = paged.positions();
  shape.heads = paged.heads;
  shape.kv_heads = paged.kv_heads;
  shape.dim = paged.dim;
  return shape;
}

inline int64_t cuda_paged_at_once(const PagedShape& paged) {
  const int64_t each = block_bytes(cuda_decode_block, cuda_paged_rows(paged, 1));
  return std::clamp<int64_t>(kCudaPagedBytes / std::max<int64_t>(1, each), 1, std::max<int64_t>(1, paged.rows));
}

inline int64_t cuda_paged_scratch(const PagedShape& paged) {
  return block_bytes(cuda_decode_block, cuda_paged_rows(paged, cuda_paged_at_once(paged)));
}

}  // namespace headroom
