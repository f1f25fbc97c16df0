#include "passes/qat.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "planner/technique.h"

namespace headroom::techniques {

namespace {

constexpr std::string_view kKinds[] = {"int8-int4", "int4", "int8"};

void check(const PlanRequest&, const std::string& setting) {
  check_setting(kQat, setting, {"int8-int4", "int4", "int8", "off"});
}

Verdict verdict(const PlanRequest& request) {
  if (weights_are(request, WeightForm::adapted))
    return {"acts on trained weights; with adapters the matrices are frozen",
            "leave --lora-r out; or --technique quantize-weights=int4 trains adapters over a quantised base"};
  if (weights_are(request, WeightForm::codes))
    return {"needs unquantised weights; these are stored as codes",
            "start from the model in 32 or 16 bits, or leave qat out"};
  return {};
}

std::vector<Setting> choices(const PlanRequest& request, const Candidate&) {
  if (!asked_for(request, kQat)) return {Setting{}};
  const auto at = std::find(std::begin(kKinds), std::end(kKinds), pin(request, kQat.name));
  return {{.count = 1, .form = static_cast<uint8_t>(at - std::begin(kKinds))}};
}

std::string kind_of(const Setting& setting) { return setting.taken() ? std::string(kKinds[setting.form]) : "off"; }

void round(Assembly& a, const PlanRequest& request, const Candidate& candidate) {
  const std::string kind = kind_of(candidate[qat]);
  for (const NodeId id : a.graph.region(a.forward).nodes)
    if (a.graph.node(id).attrs.text("layout") == "in_out")
      throw Error(
          ErrorKind::usage,
          fmt::format("--technique qat={}: {} models store matrices [in, out], and groups would lie across rows", kind,
                      request.model),
          "train without qat; evaluate and generate take --technique quantize-weights=int4");
  if (fake_quantize(a.graph, a.forward, kind) == 0)
    throw Error(ErrorKind::usage, fmt::format("--technique qat={}: the model has no linear layers to quantise", kind),
                "leave it out");
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (!chosen[qat].taken())
    return {"off", "rounds the operands of products: used only when named (--technique qat=int8-int4)"};
  return {.value = kind_of(chosen[qat]),
          .why = why_pinned(request, kQat),
          .without = chosen.without(qat),
          .if_larger = "; weights stay in full, and a layer's rounded copies exist while it runs"};
}

}  // namespace

constinit const Technique qat{
    .info = &kQat,
    .usual = "int8-int4",
    .ladder = {7},
    .check = check,
    .verdict = verdict,
    .choices = choices,
    .weights = WeightForm::rounded,
    .for_inference = true,
    .inference_pass =
        [](Graph& graph, std::span<const RegionId> programs, const PlanRequest& request) {
          for (const RegionId program : programs) fake_quantize(graph, program, pin(request, kQat.name));
        },
    .model_pass = round,
    .told = told,
    .record =
        [](const PlanRequest&, const Candidate& chosen, Choices& out) {
          if (chosen[qat].taken()) out.set("qat", kind_of(chosen[qat]));
        },
    .as_pin = kind_of,
};

}  // namespace headroom::techniques
