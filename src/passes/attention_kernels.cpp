#include "passes/attention_kernels.h"

#include "cost/attention_rates.h"
#include "ir/call_types.h"
#include "ops/attention/cuda_scratch.h"

namespace headroom {
namespace {

// The set of kernels for a call; empty where nothing measured says so.
std::string_view kernels_for(const OpCall& call, AttentionPass pass, const DeviceFacts& facts, const Profile& profile) {
  const AttentionShape shape = attention_shape(call);
  if (!is_mma_head(shape.dim)) return {};  // ours were measured on tensor cores
  const auto rate = [&](std::string_view kernels) { return measured_attention_rate(profile, kernels, call, pass); };
  const double own = rate(kOwnKernels);
  if (own <= 0) return {};
  if (cudnn_refusal(call, facts, pass == AttentionPass::backward)) return kOwnKernels;
  const double cudnn = rate(kCudnnKernels);
  if (cudnn <= 0) return {};
  return own > cudnn ? kOwnKernels : kCudnnKernels;
}

}  // namespace

void choose_attention_kernels(Graph& graph, const DeviceFacts& facts, const Profile& profile) {
  if (facts.is_cpu() || profile.attention_kernels.empty()) return;
  const Bindings bounds = graph.bounds();
  CallTypes types;
  for (Node& node : graph.nodes) {
    if (!node.op || operand(node, "offset") != kNone) continue;  // a loop, or against a cache
    const CostClass cost = node.op->cost_class();
    if (cost != CostClass::attention && cost != CostClass::attention_grad) continue;
    const AttentionPass pass = cost == CostClass::attention ? AttentionPass::forward : AttentionPass::backward;
    const std::string_view kernels = kernels_for(types.of(graph, node, bounds), pass, facts, profile);
    if (!kernels.empty()) node.attrs.set("kernels", std::string(kernels));
  }
}

}  // namespace headroom
