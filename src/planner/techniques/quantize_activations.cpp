#include "passes/quantize_activations.h"

#include "base/error.h"
#include "planner/technique.h"

namespace headroom::techniques {

namespace {

void check(const PlanRequest& request, const std::string& setting) {
  check_setting(kQuantizeActivations, setting, {"int8", "off"});
  if (setting == "off" || request.facts.is_cpu()) return;
  throw Error(ErrorKind::usage, "--technique quantize-activations=int8 has no kernels for a GPU",
              "--device cpu, or leave it out");
}

Verdict verdict(const PlanRequest& request) {
  if (weights_are(request, WeightForm::rounded))
    return {"rounds activations to 8 bits; qat rounds them too", "name one of the two"};
  return {};
}

void require_layers(const PlanRequest& request, int64_t layers) {
  if (layers > 0) return;
  throw Error(ErrorKind::usage,
              fmt::format("--technique quantize-activations=int8: no matrix of {} is stored as whole numbers in groups "
                          "of a multiple of 32",
                          request.model),
              "--technique quantize-weights=int8-g32 beside it, or a checkpoint in Q8_0, int8 or int4");
}

void multiply_codes(Assembly& a, const PlanRequest& request, const Candidate&) {
  if (a.trains)
    throw Error(ErrorKind::usage,
                "--technique quantize-activations=int8 acts on evaluate, generate and serve; there is no gradient "
                "through rounded activations",
                "--technique qat=int8-int4 trains a model for them; quantize-training=int8-mixed multiplies in 8 bits");
  require_layers(request, headroom::quantize_activations(a.graph, a.forward));
}

void multiply_codes_of_all(Graph& graph, std::span<const RegionId> programs, const PlanRequest& request) {
  int64_t layers = 0;
  for (const RegionId program : programs) layers += headroom::quantize_activations(graph, program);
  require_layers(request, layers);
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (!chosen[quantize_activations].taken())
    return {"off", "rounds activations: used only when named (--technique quantize-activations=int8)"};
  return {pin(request, kQuantizeActivations.name), why_pinned(request, kQuantizeActivations),
          chosen.without(quantize_activations)};
}

}  // namespace

constinit const Technique quantize_activations{
    .info = &kQuantizeActivations,
    .usual = "int8",
    .check = check,
    .verdict = verdict,
    .choices = when_asked_for<kQuantizeActivations>,
    .for_inference = true,
    .inference_pass = multiply_codes_of_all,
    .model_pass = multiply_codes,
    .told = told,
    .record =
        [](const PlanRequest&, const Candidate& chosen, Choices& out) {
          if (chosen[quantize_activations].taken()) out.set("quantize_activations", "int8");
        },
};

}  // namespace headroom::techniques
