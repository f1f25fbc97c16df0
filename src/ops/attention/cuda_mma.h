// Launchers of attention's device code on tensor cores.
#pragma once

#include "ops/attention/cuda_kernels.h"

namespace headroom::cuda {

// What these take: bf16 operands, heads of is_mma_head() (kernel_choice.h), a soft cap or dropout, compute capability
// 8.0 and later.

// Dynamic shared memory of a block.
int64_t attention_mma_shared(int64_t dim);
// Of the gradient's there are two: a roomy one is faster where two blocks share a multiprocessor.
int64_t attention_mma_grad_shared(int64_t dim, bool roomy);

// As launch_attention.
void launch_attention_mma(const AttentionSizes& sizes, const AttentionArrays& arrays, CudaStream stream);
// As launch_attention_grad; the same bits, roomy or not.
void launch_attention_mma_grad(const AttentionSizes& sizes, const AttentionGradArrays& arrays, bool roomy,
                               CudaStream stream);

}  // namespace headroom::cuda
