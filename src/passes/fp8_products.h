// Products in fp8: the setting fp8 of matmul-precision.
//
// What: sets attribute "multiply" of linear layers and their gradients whose operands are bf16.
//     y = linear(x, w)   becomes   y = linear(x, w) {multiply = fp8}
//   Their kernels round both operands to eight bits, scaled by a power of two that follows from the largest element
//   (ops/linear/fp8.h), and sum in fp32. Results, storage and everything else stay as they are.
// Legal when: named (--matmul-precision fp8): lossy. On a GPU with fp8 tensor cores, in bf16-mixed or bf16-true. Loss,
//   attention, experts and low-rank products stay in bf16, and so do products with a size that is not a multiple of 16.
// Placed here because: after autodiff, so that it meets the gradients' products too; before any schedule, since scratch
//   and time follow from it.
// Saves: time, where a product is large enough to make up for the passes over its operands that rounding takes. Costs:
//   scratch, a byte for each element of the operands.
#pragma once

#include "cost/profile.h"
#include "ir/graph.h"

namespace headroom {

// Why a device has no products in fp8; empty if it has.
std::string fp8_refusal(const DeviceFacts& facts);

// Acts on the products that the profile expects to be faster in fp8, at the bounds of the graph's symbols. Returns
// their number.
int64_t multiply_in_fp8(Graph& graph, const Profile& profile);

}  // namespace headroom
