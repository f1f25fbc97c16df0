#include "planner/techniques/precision.h"

#include <fmt/format.h>

#include "base/error.h"
#include "ops/cuda/capabilities.h"
#include "passes/narrow_products.h"
#include "passes/narrow_weights.h"

namespace headroom {
namespace techniques {
namespace {

Told not_taken(const Precision& precision) {
  return {"off", fmt::format("changes the arithmetic: used only when named (--precision {})", precision.word)};
}

// The form of fp16 on a device.
std::string how_multiplied(const PlanRequest& request, const Precision& precision) {
  if (precision.narrow != DType::f16) return {};
  if (request.facts.is_cpu())
    return "; the CPU kernels have no fp16 arithmetic: tiles of the operands are converted to fp32 where they are "
           "multiplied, which takes longer than fp32";
  return std::string("; attention in fp16 runs in fp32 arithmetic") +
         (has_bf16_tensor_cores(request.facts) ? ": on this GPU bf16-mixed and bf16-true are faster" : "");
}

std::string how_scaled(const Precision& precision) {
  return precision.scales_loss() ? "; the loss is scaled, and a step whose gradients are not finite is skipped" : "";
}

// LitGPT's manual has the same warning for its 16-true.
std::string range_of(const Precision& precision) {
  if (precision.narrow != DType::f16) return {};
  return "; numbers above 65504 become infinite, and the model may start to produce NaN: 16-mixed keeps fp32 weights, "
         "bf16-true has fp32's range";
}

}  // namespace

std::vector<Setting> mixed_choices(const PlanRequest& request, const Precision& precision) {
  if (!asked_for(request, *precision.technique)) return {Setting{}};
  return {{.count = 1, .form = kWeightCopies}, {.count = 1}};
}

void narrow_forward(Assembly& assembly, const Precision& precision, const Setting& setting) {
  narrow_products(assembly.graph, assembly.forward, precision.narrow);
  if (setting.form == kWeightCopies)
    assembly.copies = keep_weight_copies(assembly.graph, assembly.forward);
  else
    round_in_products(assembly.graph, assembly.forward);
}

Told mixed_told(const PlanRequest& request, const Candidate& chosen, const Technique& technique,
                const Precision& precision) {
  if (!chosen[technique].taken()) return not_taken(precision);
  const bool copies = chosen[technique].form == kWeightCopies;
  return {.value = "on",
          .why = "named by --precision",
          .without = chosen.without(technique),
          .also = (copies ? "; " + copies_phrase(chosen[technique], precision) + " are kept"
                          : std::string("; weights are rounded where they are multiplied")) +
                  how_scaled(precision) + how_multiplied(request, precision),
          .if_larger = "; here it needs more memory than fp32: the copies outweigh the activations saved"};
}

std::string copies_phrase(const Setting& setting, const Precision& precision) {
  if (setting.form != kWeightCopies) return "";
  return precision.narrow == DType::f16 ? "fp16 weight copies" : "bf16 weight copies";
}

void narrow_all(Assembly& assembly, const Precision& precision) {
  (assembly.trains ? store_weights_to_train : store_weights_to_read)(assembly.graph, precision.narrow);
  round_in_products(assembly.graph, assembly.forward);
}

Told true_told(const PlanRequest& request, const Candidate& chosen, const Technique& technique,
               const Precision& precision) {
  if (!chosen[technique].taken()) return not_taken(precision);
  return {.value = "on",
          .why = "named by --precision",
          .without = chosen.without(technique),
          .also = how_scaled(precision) + how_multiplied(request, precision) + range_of(precision)};
}

}  // namespace techniques

const Precision* narrow_precision_of(const PlanRequest& request) {
  for (const Precision& precision : kPrecisions)
    if (asked_for(request, *precision.technique)) return &precision;
  return nullptr;
}

std::string precision_of(const PlanRequest& request) {
  const Precision* const precision = narrow_precision_of(request);
  return precision ? std::string(precision->word) : "32-true";
}

void set_precision(PlanRequest& request, const std::string& precision) {
  if (precision == "32-true") return;
  const Precision* const known = find_precision(precision);
  HR_CHECK(known, "there is no precision '{}'", precision);
  request.techniques[std::string(known->technique->name)] = {"on", "named by --precision"};
}

bool scales_loss(const PlanRequest& request) {
  const Precision* const precision = narrow_precision_of(request);
  return precision && precision->scales_loss();
}

bool update_waits(const PlanRequest& request) { return request.clips || scales_loss(request); }

}  // namespace headroom
