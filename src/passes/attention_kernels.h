// Attention on a GPU by cuDNN or by headroom's own kernels, by the profile's measurements.
//
// What: sets attribute "kernels" (ops/attention/kernel_choice.h) of attention and its gradient to the faster set, for
//   the forward and the backward pass apart, at the bound of the sequence length.
//     o, lse = attention(q, k, v)   becomes   o, lse = attention(q, k, v) {kernels = own}
//   Calls that cuDNN does not take get "own", by which their time is predicted. Reassociating: both sum in a fixed
//   order, but not in the same one. Where any order is asked for (passes/attention_order.h), the gradient may also be
//   "cudnn_any_order".
// Legal when: the profile has attention_kernels; nothing is done without, and where only one set was measured the
//   device's own rule stands. Any order is taken where it was not measured, too. A device that lacks the named set
//   takes the other.
// Placed here because: after autodiff, so that it meets the gradients; before any schedule, since scratch and time
//   follow from it.
// Saves: the slower kernels' time; with "own" cuDNN's workspace. Costs: nothing.
#pragma once

#include "cost/profile.h"
#include "ir/graph.h"

namespace headroom {

// How the gradient of attention may sum.
enum class AttentionOrder : uint8_t { fixed, any };

// Acts on every node of the graph, for a device of these facts; on none for a CPU. Pure but for the graph.
void choose_attention_kernels(Graph& graph, const DeviceFacts& facts, const Profile& profile, AttentionOrder order);

}  // namespace headroom
