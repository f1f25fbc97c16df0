// Scratch of the CUDA kernels of attention_paged: the same formula for the plan and for the kernels that divide it.
#pragma once

#include "ops/attention/cuda_scratch.h"
#include "ops/paged_attention/shape.h"

namespace headroom {

// As many rows are computed at once as have partial results within this size, and at least one.
constexpr int64_t kCudaPagedBytes = int64_t{16} << 20;

// A call with `rows` rows in the form of the decoding kernels: a batch with one query each.
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
