#include "passes/attention_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/attention/kernel_choice.h"
#include "ops/cuda/capabilities.h"
#include "planner/techniques/precision.h"

namespace headroom::techniques {

namespace {

Verdict verdict(const PlanRequest& request) {
  if (pin(request, kAttentionOrder.name) == "fixed") return {};
  if (request.facts.is_cpu())
    return {"is for GPUs; on the CPU the gradient of attention has a fixed order at no cost", "leave it out"};
  if (!has_bf16_tensor_cores(request.facts))
    return {fmt::format("needs compute capability 8.0 or later; this is {}",
                        compute_capability_name(compute_capability(request.facts))),
            "leave it out"};
  if (!precision_of(request).starts_with("bf16"))
    return {fmt::format("applies to bf16 attention only, not to --precision {}", precision_of(request)),
            "add --precision bf16-mixed or bf16-true, or leave it out"};
  if (request.arithmetic_fixed)
    return {"does not give the same bits each time, as --arithmetic fixed requires", "leave one of the two out"};
  return {};
}

std::vector<Setting> choices(const PlanRequest& request, const Candidate&) {
  return {pin(request, kAttentionOrder.name) == "any" ? Setting{1} : Setting{}};
}

bool was_measured(const Profile& profile) {
  return std::any_of(profile.attention_kernels.begin(), profile.attention_kernels.end(),
                     [](const AttentionRate& rate) { return rate.kernels == kCudnnAnyOrder && rate.backward > 0; });
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (!chosen[attention_order].taken())
    return {"fixed", "two runs would agree only to rounding: used only when named (--attention-order any)"};
  return {
      .value = "any",
      .why = "named by --attention-order",
      .without = chosen.without(attention_order),
      .also = was_measured(request.profile)
                  ? "; applies to the gradients of attention that cuDNN computes, unless the profile has faster kernels"
                  : "; applies to the gradients of attention that cuDNN computes; the profile has no rate for these "
                    "kernels; the rate of attention's other kernels is used"};
}

}  // namespace

// No pass: the choice of attention's kernels reads its setting.
constinit const Technique attention_order{
    .info = &kAttentionOrder,
    .option = {"--attention-order", "any", "any"},
    .usual = "any",
    .check =
        [](const PlanRequest&, const std::string& setting) {
          check_setting(kAttentionOrder, setting, {std::begin(kAttentionOrderWords), std::end(kAttentionOrderWords)});
        },
    .verdict = verdict,
    .choices = choices,
    .named_only = true,
    .told = told,
    .record =
        [](const PlanRequest&, const Candidate& chosen, Choices& out) {
          if (chosen[attention_order].taken()) out.set("attention_order", "any");
        },
};

}  // namespace headroom::techniques
