// Attention by a library of the device: prepared once, then queued without an allocation.
#pragma once

#include <cstdint>
#include <string>

#include "ops/attention/cuda_kernels.h"
#include "ops/attention/shape.h"
#include "ops/cuda/library_offer.h"

namespace headroom {

// A prepared call on device memory. All operands are bf16 and aligned to 16 bytes; lse is as in headroom's own kernels
// (the natural logarithm of the softmax's sum). Repeated runs on the same device give the same bits.
template <typename Arrays>
class CudaDnnCall {
 public:
  virtual ~CudaDnnCall() = default;
  virtual int64_t workspace_bytes() const = 0;
  // Queues the call on `stream`, with workspace_bytes() at `workspace`, aligned to 256 bytes; does nothing in
  // LaunchMode::load, because its code is loaded already. Thread-safe. Throws Error(run) when the library or the driver
  // refuses what it accepted in the rehearsal.
  virtual void run(const Arrays& arrays, void* workspace, CudaStream stream) const = 0;
};
using CudaAttention = CudaDnnCall<cuda::AttentionArrays>;
using CudaAttentionGrad = CudaDnnCall<cuda::AttentionGradArrays>;  // does not need `products`

// A call, or why the implementation refuses it.
using CudaAttentionOffer = CudaLibraryOffer<CudaAttention>;
using CudaAttentionGradOffer = CudaLibraryOffer<CudaAttentionGrad>;

// The library of attention. Operands have the layout of headroom's own kernels (ops/attention/cuda_kernels.h).
class CudaDnn {
 public:
  virtual ~CudaDnn() = default;
  // Prepare self-attention without row masks (`limit` and `starts` of the shape are ignored), with sums in a fixed
  // order unless the shape has any_order, in at most `workspace` bytes, and rehearse it, which loads its code
  // (ops/cuda/rehearsal.h). The same shape and workspace give the same call. Refuse when the library has no kernel, and
  // when the library or the driver fails. Thread-safe.
  virtual CudaAttentionOffer attention(const AttentionShape& shape, int64_t workspace) = 0;
  virtual CudaAttentionGradOffer attention_grad(const AttentionShape& shape, int64_t workspace) = 0;
  // What the library lacks, and failures so far, as a sentence for the user; empty when there is nothing. Thread-safe.
  virtual std::string remark() const { return {}; }
  // Name and version, for messages.
  virtual std::string name() const = 0;
};

}  // namespace headroom
