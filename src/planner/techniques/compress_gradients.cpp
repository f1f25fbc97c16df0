#include "passes/compress_gradients.h"

#include "planner/techniques/fused_optimizer.h"
#include "planner/techniques/micro_batch.h"
#include "planner/techniques/permission.h"

namespace headroom::techniques {

namespace {

void check(const PlanRequest&, const std::string& setting) {
  check_setting(kCompressGradients, setting, {"bf16", kAllowed, "off"});
}

std::vector<Setting> choices(const PlanRequest& request, const Candidate& decided) {
  if (!gradients_outlive_layers(decided)) return {Setting{}};
  return permitted_choices(request, kCompressGradients);
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (chosen[compress_gradients].taken())
    return {.value = "bf16",
            .why = "named or allowed",
            .without = chosen.without(compress_gradients),
            .if_larger = "; here the fp32 copy of a matrix takes more than bf16 saves"};
  if (asked_for(request, kCompressGradients) && !gradients_outlive_layers(chosen))
    return {.value = "off",
            .why = "saves nothing here: each update follows its gradient in the backward pass",
            .pin_leaves_choice = true};
  return told_not_taken(request, kCompressGradients,
                        "rounds the gradients: used only when named (--technique compress-gradients=bf16) or allowed");
}

}  // namespace

constinit const Technique compress_gradients{
    .info = &kCompressGradients,
    .usual = "bf16",
    .ladder = {4},
    .by_permission = true,
    .check = check,
    .choices = choices,
    .pass = [](Graph& graph, const PlanRequest& request,
               const Candidate& candidate) { headroom::compress_gradients(graph, accumulates(request, candidate)); },
    .told = told,
    .phrase = [](const Setting& setting) -> std::string { return setting.taken() ? "gradients in bf16" : ""; },
    .as_pin = [](const Setting& setting) -> std::string { return setting.taken() ? "bf16" : "off"; },
};

}  // namespace headroom::techniques
