#include "passes/compress_activations.h"

#include "planner/techniques/permission.h"

namespace headroom::techniques {

namespace {

Verdict has_kernels(const PlanRequest& request) {
  if (request.facts.is_cpu()) return {};
  return {"has kernels for the CPU only", "leave it out, or use --technique offload-activations=on"};
}

// Permission does not ask for it.
Verdict verdict(const PlanRequest& request) {
  return only_allowed(request, kCompressActivations) ? Verdict{} : has_kernels(request);
}

void check(const PlanRequest&, const std::string& setting) {
  check_setting(kCompressActivations, setting, {"int8", kAllowed, "off"});
}

std::vector<Setting> choices(const PlanRequest& request, const Candidate&) {
  if (!request.facts.is_cpu()) return {Setting{}};
  return permitted_choices(request, kCompressActivations);
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (const Verdict here = has_kernels(request); !here.why_not.empty())
    return {.value = "off", .why = here.why_not, .pin_leaves_choice = only_allowed(request, kCompressActivations)};
  if (!chosen[compress_activations].taken())
    return told_not_taken(request, kCompressActivations,
                          "rounds what the backward pass reads: used only when named (--technique "
                          "compress-activations=int8) or allowed");
  return {"int8", why_pinned(request, kCompressActivations), chosen.without(compress_activations)};
}

}  // namespace

constinit const Technique compress_activations{
    .info = &kCompressActivations,
    .usual = "int8",
    .ladder = {3},
    .by_permission = true,
    .check = check,
    .verdict = verdict,
    .choices = choices,
    .layers_add_up = false,
    .rounds_kept = true,
    .pass = [](Graph& graph, const PlanRequest&, const Candidate&) { headroom::compress_activations(graph); },
    .told = told,
    .phrase =
        [](const Setting& setting) { return setting.taken() ? std::string("activations in int8") : std::string(); },
    .record =
        [](const PlanRequest&, const Candidate& chosen, Choices& out) {
          if (chosen[compress_activations].taken()) out.set("compress_activations", std::string("int8"));
        },
    .as_pin = [](const Setting& setting) { return std::string(setting.taken() ? "int8" : "off"); },
};

}  // namespace headroom::techniques
