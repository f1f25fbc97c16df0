// Scratch of the CUDA attention kernels, one formula for the plan and for the kernels that carve it.
#pragma once

#include "ops/attention/scratch.h"

namespace headroom {

// Keys per partial result when decoding, and the largest head the decoding kernels take.
constexpr int64_t kCudaDecodeKeys = 128;
constexpr int64_t kCudaDecodeDim = 512;

// Decoding, one query per batch row: a partial result per head and chunk of keys.
struct CudaDecodeBlock {
  float* o;        // [batch * heads][chunks][dim]
  float* maximum;  // [batch * heads][chunks]
  float* sum;      // [batch * heads][chunks]
};
inline int64_t cuda_decode_chunks(const AttentionShape& shape) {
  return (shape.keys + kCudaDecodeKeys - 1) / kCudaDecodeKeys;
}
inline bool cuda_decodes(const AttentionShape& shape) { return shape.queries == 1 && shape.dim <= kCudaDecodeDim; }
inline CudaDecodeBlock cuda_decode_block(Carver& carver, const AttentionShape& shape) {
  const int64_t partials = shape.batch * shape.heads * cuda_decode_chunks(shape);
  CudaDecodeBlock block{};
  block.o = carver.take<float>(partials * shape.dim);
  block.maximum = carver.take<float>(partials);
  block.sum = carver.take<float>(partials);
  return block;
}

// Attention itself needs none.
inline int64_t cuda_cached_scratch(const AttentionShape& shape) {
  return cuda_decodes(shape) ? block_bytes(cuda_decode_block, shape) : 0;
}
// The gradient: the sum of do * o for each query and head.
inline int64_t cuda_grad_scratch(const AttentionShape& shape) {
  return round_up(shape.batch * shape.heads * shape.queries * static_cast<int64_t>(sizeof(float)), 64);
}

}  // namespace headroom
