// Scratch of the load-balancing loss's sums on a CUDA device: the same formula for the plan and for the kernels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/moe_balance/sizes.h"

namespace headroom {

// A warp sums a part of the tokens. The number of parts depends only on the number of tokens, so that the sums have one
// order on every device: eight tokens each, or more if that would be more warps than a large device runs at once.
constexpr int64_t kCudaBalanceTokens = 8, kCudaBalanceParts = 512;
inline int64_t cuda_balance_parts(int64_t tokens) {
  return std::clamp<int64_t>((tokens + kCudaBalanceTokens - 1) / kCudaBalanceTokens, 1, kCudaBalanceParts);
}

// f32 [balance_length(experts), parts]
inline int64_t cuda_balance_scratch(int64_t tokens, int64_t experts) {
  return balance_length(experts) * cuda_balance_parts(tokens) * static_cast<int64_t>(sizeof(float));
}

}  // namespace headroom
