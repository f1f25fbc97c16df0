#include "passes/quantize_weights.h"

#include "base/error.h"
#include "base/integer_codes.h"
#include "planner/technique.h"
#include "planner/techniques/lora.h"

namespace headroom::techniques {

namespace {

// The lengths of rows in codes have kernels on the CPU alone.
void check_adapters(const PlanRequest& request, const std::string& setting) {
  if (setting == "off" || request.facts.is_cpu() || !requested_lora(request).decomposed) return;
  throw Error(ErrorKind::usage,
              fmt::format("--technique quantize-weights={}: DoRA over codes is built for the CPU, not for {}", setting,
                          request.facts.device),
              "keep the base in 16 bits (--precision bf16-true), or leave DoRA out (LoRA over codes)");
}

void check(const PlanRequest& request, const std::string& setting) {
  check_adapters(request, setting);
  if (integer_codes(setting)) return;
  if (setting.starts_with("int4-") || setting.starts_with("int8-"))
    throw Error(ErrorKind::usage,
                fmt::format("--technique quantize-weights={}: there is no such group of elements", setting),
                fmt::format("{}-g32, or another multiple of 8 that divides the rows; {}-row", setting.substr(0, 4),
                            setting.substr(0, 4)));
  check_setting(kQuantizeWeights, setting, {"nf4", "nf4-dq", "fp4", "int8", "int4", "off"});
}

void store(Assembly& a, const PlanRequest& request, const Candidate&) {
  const std::string kind = pin(request, kQuantizeWeights.name);
  if (a.trains && !weights_are(request, WeightForm::adapted))
    throw Error(ErrorKind::usage,
                fmt::format("--technique quantize-weights={}: weights that are trained cannot be codes", kind),
                "--lora-r 16 trains adapters on top of the quantised base");
  const int64_t count = headroom::quantize_weights(a.graph, a.forward, kind, a.trains ? &a.frozen : nullptr);
  if (count == 0 && !a.trains)
    throw Error(ErrorKind::usage,
                fmt::format("--technique quantize-weights={}: the model has no linear layers to quantise", kind),
                "leave it out");
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (!chosen[quantize_weights].taken())
    return {"off", "rounds the weights: used only when named (--technique quantize-weights=nf4)"};
  const std::string& why = request.techniques.at(std::string(kQuantizeWeights.name)).why;
  return {pin(request, kQuantizeWeights.name), why.empty() ? "named by --technique" : why,
          chosen.without(quantize_weights)};
}

}  // namespace

constinit const Technique quantize_weights{
    .info = &kQuantizeWeights,
    .usual = "nf4",
    .ladder = {8, &lora},
    .check = check,
    .choices = when_asked_for<kQuantizeWeights>,
    .weights = WeightForm::codes,
    .for_inference = true,
    .inference_pass =
        [](Graph& graph, std::span<const RegionId> programs, const PlanRequest& request) {
          headroom::quantize_weights(graph, programs.front(), pin(request, kQuantizeWeights.name), nullptr);
        },
    .model_pass = store,
    .told = told,
    .record =
        [](const PlanRequest& request, const Candidate& chosen, Choices& out) {
          if (chosen[quantize_weights].taken()) out.set("quantize_weights", pin(request, kQuantizeWeights.name));
        },
};

}  // namespace headroom::techniques
