// Launchers of attention's device code on tensor cores.
#pragma once

#include "ops/attention/cuda_kernels.h"

namespace headroom::cuda {

// Supported: bf16 operands, heads of is_mma_head() (kernel_choice.h), a soft cap or dropout but not both, compute
// capability 8.0 and later.

// Dynamic shared memory of a block.
int64_t attention_mma_shared(int64_t dim);
// The gradient has two variants: the roomy one is faster if two of its blocks fit a multiprocessor.
int64_t attention_mma_grad_shared(int64_t dim, bool roomy);

// Like launch_attention.
void launch_attention_mma(const AttentionSizes& sizes, const AttentionArrays& arrays, CudaStream stream);
// Like launch_attention_grad; both variants give the same bits.
void launch_attention_mma_grad(const AttentionSizes& sizes, const AttentionGradArrays& arrays, bool roomy,
                               CudaStream stream);

}  // namespace headroom::cuda
