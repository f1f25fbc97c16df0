#include "passes/attention_kernels.h"

#include "cost/attention_rates.h"
#include "ir/call_types.h"
#include "ops/attention/cuda_scratch.h"

namespace headroom {
namespace {

// The set of kernels with sums in a fixed order for a call; empty if no measurement gives one.
std::string_view ordered_kernels(const OpCall& call, AttentionPass pass, const DeviceFacts& facts,
                                 const Profile& profile) {
  const AttentionShape shape = attention_shape(call);
  if (!is_mma_head(shape.dim)) return {};  // headroom's own were measured on tensor cores
  const auto rate = [&](std::string_view kernels) { return measured_attention_rate(profile, kernels, call, pass); };
  const double own = rate(kOwnKernels);
  if (own <= 0) return {};
  if (cudnn_refusal(call, facts, pass == AttentionPass::backward)) return kOwnKernels;
  const double cudnn = rate(kCudnnKernels);
  if (cudnn <= 0) return {};
  return own > cudnn ? kOwnKernels : kCudnnKernels;
}

// The same for a gradient that may sum in any order, which is assumed to be faster unless a measurement shows
// otherwise.
std::string_view gradient_kernels(const OpCall& call, const DeviceFacts& facts, const Profile& profile) {
  const std::string_view ordered = ordered_kernels(call, AttentionPass::backward, facts, profile);
  Attrs attrs = call.attrs;
  attrs.set("kernels", std::string(kCudnnAnyOrder));
  if (cudnn_refusal({call.inputs, call.outputs, attrs}, facts, true)) return ordered;
  const auto rate = [&](std::string_view kernels) {
    return measured_attention_rate(profile, kernels, call, AttentionPass::backward);
  };
  const double any = rate(kCudnnAnyOrder);
  return any > 0 && !ordered.empty() && rate(ordered) >= any ? ordered : kCudnnAnyOrder;
}

}  // namespace

void choose_attention_kernels(Graph& graph, const DeviceFacts& facts, const Profile& profile, AttentionOrder order) {
  const bool any_order = order == AttentionOrder::any;
  if (facts.is_cpu() || (profile.attention_kernels.empty() && !any_order)) return;
  const Bindings bounds = graph.bounds();
  CallTypes types;
  for (Node& node : graph.nodes) {
    if (!node.op || operand(node, "offset") != kNone) continue;  // a loop, or against a cache
    const CostClass cost = node.op->cost_class();
    if (cost != CostClass::attention && cost != CostClass::attention_grad) continue;
    const AttentionPass pass = cost == CostClass::attention ? AttentionPass::forward : AttentionPass::backward;
    const OpCall call = types.of(graph, node, bounds);
    const std::string_view kernels = any_order && pass == AttentionPass::backward
                                         ? gradient_kernels(call, facts, profile)
                                         : ordered_kernels(call, pass, facts, profile);
    if (!kernels.empty()) node.attrs.set("kernels", std::string(kernels));
  }
}

}  // namespace headroom
