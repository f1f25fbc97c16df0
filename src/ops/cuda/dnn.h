// Attention by an outside library of the device: prepared once, then queued without an allocation.
#pragma once

#include <cstdint>
#include <string>

#include "ops/attention/cuda_kernels.h"
#include "ops/attention/shape.h"
#include "ops/cuda/library_offer.h"

namespace headroom {

// A prepared call over device memory, all operands bf16 and aligned to 16 bytes, lse as our own kernels have it (the
// natural logarithm of the softmax's sum). Repeated runs on the same device give the same bits.
template <typename Arrays>
class CudaDnnCall {
 public:
  virtual ~CudaDnnCall() = default;
  virtual int64_t workspace_bytes() const = 0;
  // Queues the call on `stream`, with workspace_bytes() at `workspace`, aligned to 256 bytes; in LaunchMode::load does
  // nothing, as its code is there already. Thread-safe. Throws Error(run) when the library or the driver refuses what
  // it took when it was rehearsed.
  virtual void run(const Arrays& arrays, void* workspace, CudaStream stream) const = 0;
};
using CudaAttention = CudaDnnCall<cuda::AttentionArrays>;
using CudaAttentionGrad = CudaDnnCall<cuda::AttentionGradArrays>;  // needs no `products`

// A call, or the reason why the implementation refuses it.
using CudaAttentionOffer = CudaLibraryOffer<CudaAttention>;
using CudaAttentionGradOffer = CudaLibraryOffer<CudaAttentionGrad>;

// The library of attention. Its operands lie as those of our own kernels (ops/attention/cuda_kernels.h).
class CudaDnn {
 public:
  virtual ~CudaDnn() = default;
  // Prepare self-attention without masks of rows (`limit` and `starts` of the shape are not looked at), its sums in a
  // fixed order but where the shape has any_order, in no more than `workspace` bytes, and rehearse it, which loads its
  // code (ops/cuda/rehearsal.h); the same shape and cap give the same call. They refuse what the library has no kernel
  // for, and where the library or the driver fails. Thread-safe.
  virtual CudaAttentionOffer attention(const AttentionShape& shape, int64_t workspace) = 0;
  virtual CudaAttentionGradOffer attention_grad(const AttentionShape& shape, int64_t workspace) = 0;
  // What it lacks, and what failed so far, as a sentence for the user; empty when all is well. Thread-safe.
  virtual std::string remark() const { return {}; }
  // Name and version, for messages.
  virtual std::string name() const = 0;
};

}  // namespace headroom
