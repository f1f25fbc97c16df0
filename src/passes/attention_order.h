// attention-order: whether the gradient of attention may sum in no fixed order.
//
// What: with any, the gradient of attention on a GPU may be cuDNN's that adds parts of dq in the order in which its
//   blocks end (kernel set cudnn_any_order of ops/attention/kernel_choice.h).
//     dq, dk, dv = attention_grad(...)   becomes   dq, dk, dv = attention_grad(...) {kernels = cudnn_any_order}
//   for each call that cuDNN takes and where the profile has no faster set. fixed: never, two runs agree bitwise.
// Legal when: named (--attention-order any): repeated runs agree to rounding only. bf16 on a GPU of compute capability
//   8.0 or later; what cuDNN does not take (dropout, soft caps, padding, segments) stays with headroom's own kernels.
// Placed here because: it is what the choice of attention's kernels asks for (passes/attention_kernels.h); no pass of
//   its own.
// Saves: the time that the fixed order costs. Costs: cuDNN's workspace, linear in the length.
// Elsewhere: full_determinism of transformers, torch.use_deterministic_algorithms, which choose fixed.
#pragma once

#include "passes/pass.h"

namespace headroom {

inline constexpr PassInfo kAttentionOrder{
    "attention-order", PassStage::schedule, TechniqueKind::reassociating,
    "any: on a GPU the gradient of attention may sum in any order, which is faster; runs agree only to rounding"};
inline constexpr std::string_view kAttentionOrderWords[] = {"fixed", "any"};

}  // namespace headroom
