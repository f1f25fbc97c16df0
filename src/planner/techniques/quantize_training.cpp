#include "passes/quantize_training.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "planner/technique.h"

namespace headroom::techniques {

namespace {

// The optimizers whose updates accept quantized weights.
std::string suitable_optimizers() {
  std::string names;
  for (const std::string_view name : optimizer_names())
    if (find_optimizer(name).by_element()) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

void check(const PlanRequest& request, const std::string& setting) {
  if (setting == "int8-mixed")
    throw Error(ErrorKind::usage, "--technique quantize-training=int8-mixed is not built: its products are in 8 bits",
                "it saves no memory; quantize-training=int8 does");
  check_setting(kQuantizeTraining, setting, {"int8", "off"});
  if (setting != "off" && !request.facts.is_cpu())
    throw Error(ErrorKind::usage, "--technique quantize-training=int8 has no kernels for a GPU",
                "--device cpu, or --precision bf16-true, whose weights take 2 bytes");
}

Verdict verdict(const PlanRequest& request) {
  if (weights_are(request, WeightForm::adapted))
    return {"acts on trained weights; with adapters the matrices are frozen",
            "leave --lora-r out; or --technique quantize-weights=int8 stores the frozen base in as many bits"};
  if (weights_are(request, WeightForm::codes))
    return {"trains the codes of weights; quantize-weights freezes them", "name one of the two"};
  if (weights_are(request, WeightForm::rounded))
    return {"stores weights as codes; qat keeps them in full and rounds them when they are read",
            "name one of the two"};
  const Optimizer& optimizer = find_optimizer(request.optimizer.optimizer());
  if (!optimizer.by_element())
    return {
        fmt::format("needs an optimizer that updates element by element with states in fp32, not {}", optimizer.name()),
        "--optim with one of these: " + suitable_optimizers()};
  return {};
}

void store(Assembly& a, const PlanRequest&, const Candidate&) {
  if (headroom::quantize_training(a.graph, a.forward) == 0)
    throw Error(ErrorKind::usage,
                "--technique quantize-training=int8: the model has no linear layers to store in codes", "leave it out");
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (!chosen[quantize_training].taken())
    return {"off", "rounds the weights at every step: used only when named (--technique quantize-training=int8)"};
  const std::string& why = request.techniques.at(std::string(kQuantizeTraining.name)).why;
  return {"int8", why.empty() ? "named by --technique" : why, chosen.without(quantize_training)};
}

}  // namespace

constinit const Technique quantize_training{
    .info = &kQuantizeTraining,
    .usual = "int8",
    .ladder = {6},
    .check = check,
    .verdict = verdict,
    .choices = when_asked_for<kQuantizeTraining>,
    .model_pass = store,
    .told = told,
    .record =
        [](const PlanRequest&, const Candidate& chosen, Choices& out) {
          if (chosen[quantize_training].taken()) out.set("quantize_training", "int8");
        },
    .as_pin = [](const Setting& setting) -> std::string { return setting.taken() ? "int8" : "off"; },
};

}  // namespace headroom::techniques
