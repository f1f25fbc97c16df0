#include "passes/quantize_weights.h"

#include "base/error.h"
#include "base/integer_codes.h"
#include "passes/freeze.h"
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

void check_form(const std::string& form) {
  if (integer_codes(form)) return;
  if (form.starts_with("int4-") || form.starts_with("int8-"))
    throw Error(ErrorKind::usage,
                fmt::format("--technique quantize-weights={}: there is no such group of elements", form),
                fmt::format("{}-g32, or another multiple of 8 that divides the rows; {}-row", form.substr(0, 4),
                            form.substr(0, 4)));
  check_setting(kQuantizeWeights, form, {"nf4", "nf4-dq", "fp4", "int8", "int4"});
}

void check(const PlanRequest& request, const std::string& setting) {
  check_adapters(request, setting);
  if (setting == "off") return;
  const std::optional<CodedParts> parts = coded_parts(setting);
  if (!parts)
    throw Error(ErrorKind::usage, fmt::format("--technique quantize-weights={}: no such parts of a model", setting),
                "name each once: int8+embedding, int8+head, int4+embedding+head:int8");
  check_form(parts->layers);
  for (const std::string& form : {parts->embedding, parts->head})
    if (!form.empty()) check_form(form);
  if (parts->beyond_layers() && !request.facts.is_cpu())
    throw Error(ErrorKind::usage,
                fmt::format("--technique quantize-weights={}: an embedding or a head in codes is built for the CPU, "
                            "not for {}",
                            setting, request.facts.device),
                fmt::format("use {}", parts->layers));
}

// For programs with a loss, which reads the head as plain numbers.
std::string form_of_layers(const PlanRequest& request) {
  const std::string setting = pin(request, kQuantizeWeights.name);
  const CodedParts parts = coded_parts(setting).value();
  if (parts.beyond_layers())
    throw Error(
        ErrorKind::usage,
        fmt::format("--technique quantize-weights={}: a loss reads embedding and head as plain numbers; they are "
                    "codes only with generate and serve",
                    setting),
        fmt::format("use {}", parts.layers));
  return parts.layers;
}

void store(Assembly& a, const PlanRequest& request, const Candidate&) {
  const std::string kind = form_of_layers(request);
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

// What an adapter saves of its own replaces the base's weight, in plain numbers.
void refuse_saved(const Graph& graph, const PlanRequest& request, ValueId weight) {
  const std::string& name = graph.value(weight).name;
  for (const std::string& module : requested_lora(request).modules_to_save)
    if (pattern_means(module, name))
      throw Error(ErrorKind::usage,
                  fmt::format("--technique quantize-weights={}: the adapter has its own {}, which cannot be codes",
                              pin(request, kQuantizeWeights.name), name),
                  "leave that part out");
}

void store_to_read(Graph& graph, std::span<const RegionId> programs, const PlanRequest& request) {
  const CodedParts parts = coded_parts(pin(request, kQuantizeWeights.name)).value();
  headroom::quantize_weights(graph, programs.front(), parts.layers, nullptr);
  for (const ValueId weight : quantize_embedding_and_head(graph, programs.front(), parts))
    refuse_saved(graph, request, weight);
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (!chosen[quantize_weights].taken())
    return {"off", "rounds the weights: used only when named (--technique quantize-weights=nf4)"};
  return {pin(request, kQuantizeWeights.name), why_pinned(request, kQuantizeWeights), chosen.without(quantize_weights)};
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
    .inference_pass = store_to_read,
    .model_pass = store,
    .told = told,
    .record =
        [](const PlanRequest& request, const Candidate& chosen, Choices& out) {
          if (chosen[quantize_weights].taken()) out.set("quantize_weights", pin(request, kQuantizeWeights.name));
        },
};

}  // namespace headroom::techniques
