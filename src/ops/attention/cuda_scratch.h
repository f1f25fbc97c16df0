// Scratch of the CUDA attention kernels: the same formula for the plan and for the kernels that divide it.
#pragma once

#include "ops/attention/kernel_choice.h"
#include "ops/attention/scratch.h"
#include "ops/cuda/capabilities.h"

namespace headroom {

// Keys per partial result in decoding, and the largest head that the decoding kernels support.
constexpr int64_t kCudaDecodeKeys = 128;
constexpr int64_t kCudaDecodeDim = 512;

// Decoding, with one query per batch row: a partial result for each head and chunk of keys.
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

inline int64_t cuda_cached_scratch(const AttentionShape& shape) {
  return cuda_decodes(shape) ? block_bytes(cuda_decode_block, shape) : 0;
}

// Why cuDNN does not support such an `attention` (or `attention_grad`) on a device; null when it may. Its gradients in
// a fixed order need a workspace quadratic in the length, except on Hopper; those in any order (kCudnnAnyOrder) do not
// on any device.
inline const char* cudnn_refusal(const OpCall& call, const DeviceFacts& facts, bool gradient) {
  const std::string_view kernels = call.attrs.text("kernels");
  if (kernels == kOwnKernels) return "the plan takes our own kernels";
  if (!has_bf16_tensor_cores(facts)) return "needs compute capability 8.0";
  if (gradient && kernels != kCudnnAnyOrder && !is_hopper(facts))
    return "the workspace of its gradient is linear in the length on Hopper only";
  for (size_t i = 0; i < 3; ++i)
    if (call.inputs[i].dtype != DType::bf16) return "operands are not all bf16";
  if (call.attrs.real("dropout", 0) > 0) return "probabilities are dropped";
  if (call.inputs.size() > (gradient ? AttentionGradInputs::cotangent + 1 : AttentionInputs::v + 1))
    return "rows have padding or segments";
  const AttentionShape shape = attention_shape(call);
  if (shape.softcap > 0) return "scores are soft-capped";
  if (shape.dim % 8 != 0 || shape.dim > 256) return "the head size is not a multiple of 8, or is above 256";
  return nullptr;
}

// Room for cuDNN's counters and the like, besides the terms below.
constexpr int64_t kCudnnSpare = int64_t{64} << 10;

// Workspace of cuDNN's gradient, in a fixed order on Hopper and in any order: dq in fp32 (twice, except on 9.x and
// 10.x), the sums of do * o, and a counter for each 64 queries; if heads share keys, dk and dv of every query head in
// bf16. Lengths are rounded up to multiples of 128.
inline int64_t cudnn_grad_workspace(const AttentionShape& shape, const DeviceFacts& facts) {
  const int64_t generation = compute_capability(facts) / 10, copies = generation == 9 || generation == 10 ? 1 : 2;
  const int64_t heads = shape.batch * shape.heads, dim = shape.dim;
  const int64_t queries = align_up(shape.queries, 128), keys = align_up(shape.keys, 128);
  const int64_t shared = shape.heads == shape.kv_heads ? 0 : 2 * keys * dim * int64_t{2};
  return heads * (queries * (copies * dim + 1) * int64_t{4} + queries / 64 * int64_t{8} + shared) + kCudnnSpare;
}

// Attention: cuDNN's workspace; headroom's own kernels need none.
inline int64_t cuda_attention_scratch(const OpCall& call, const DeviceFacts& facts) {
  return cudnn_refusal(call, facts, false) ? 0 : kCudnnSpare;
}
// The gradient: the sum of do * o for each query and head, or cuDNN's workspace.
inline int64_t cuda_grad_scratch(const OpCall& call, const DeviceFacts& facts) {
  const AttentionShape shape = attention_shape(call);
  const int64_t own = align_up(shape.batch * shape.heads * shape.queries * static_cast<int64_t>(sizeof(float)), 64);
  return cudnn_refusal(call, facts, true) ? own : std::max(own, cudnn_grad_workspace(shape, facts));
}

}  // namespace headroom
