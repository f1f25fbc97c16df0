#include "passes/quantize_training.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "cost/product_rates.h"
#include "ops/linear/int8.h"
#include "passes/int8_products.h"
#include "planner/technique.h"

namespace headroom::techniques {

namespace {

// The optimizers whose updates accept weights in codes.
std::string suitable_optimizers() {
  std::string names;
  for (const std::string_view name : optimizer_names())
    if (find_optimizer(name).by_element()) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

// Forms of the setting.
constexpr uint8_t kCodes = 0, kMixed = 1;

// The products of int8-mixed in Setting::more.
Setting mixed_setting(const Int8Parts& parts) {
  return {.count = 1, .form = kMixed, .more = parts.output | parts.grad_input << 1 | parts.grad_weight << 2};
}
Int8Parts parts_of(const Setting& setting) {
  return {(setting.more & 1) != 0, (setting.more & 2) != 0, (setting.more & 4) != 0};
}
std::string text_of(const Setting& setting) {
  if (!setting.taken()) return "off";
  return setting.form == kMixed ? int8_setting(parts_of(setting)) : "int8";
}

void check(const PlanRequest& request, const std::string& setting) {
  const bool mixed = int8_parts(setting).has_value();
  if (!mixed && setting.starts_with("int8-mixed:"))
    throw Error(ErrorKind::usage, fmt::format("--technique quantize-training={}: there are no such products", setting),
                "int8-mixed, or some of its products: int8-mixed:output+grad_input+grad_weight");
  if (!mixed) check_setting(kQuantizeTraining, setting, {"int8", "int8-mixed", "off"});
  if (setting == "off" || request.facts.is_cpu()) return;
  throw Error(ErrorKind::usage, fmt::format("--technique quantize-training={} has no kernels for a GPU", setting),
              mixed ? "--precision bf16-mixed, with --matmul-precision fp8 where compute capability is 8.9 or later"
                    : "--device cpu, or --precision bf16-true, whose weights take 2 bytes");
}

Verdict verdict_of_mixed(const PlanRequest& request) {
  if (weights_are(request, WeightForm::adapted))
    return {"multiplies by trained weights in 8 bits; with adapters the matrices are frozen",
            "leave --lora-r out; or --technique quantize-weights=int8 stores the frozen base in as many bits"};
  if (weights_are(request, WeightForm::codes))
    return {"turns weights into codes at every product; quantize-weights stores them as codes", "name one of the two"};
  if (weights_are(request, WeightForm::rounded))
    return {"rounds the operands of products to 8 bits; qat rounds them too", "name one of the two"};
  return {};
}

Verdict verdict(const PlanRequest& request) {
  if (int8_parts(pin(request, kQuantizeTraining.name))) return verdict_of_mixed(request);
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

std::vector<Setting> choices(const PlanRequest& request, const Candidate&) {
  if (!asked_for(request, kQuantizeTraining)) return {Setting{}};
  const std::optional<Int8Parts> parts = int8_parts(pin(request, kQuantizeTraining.name));
  return {parts ? mixed_setting(*parts) : Setting{.count = 1, .form = kCodes}};
}

void rewrite(Assembly& a, const PlanRequest&, const Candidate& candidate) {
  const Setting& setting = candidate[quantize_training];
  const bool mixed = setting.form == kMixed;
  const int64_t layers =
      mixed ? multiply_in_int8(a.graph, a.forward, parts_of(setting)) : headroom::quantize_training(a.graph, a.forward);
  if (layers == 0)
    throw Error(ErrorKind::usage,
                fmt::format("--technique quantize-training={}: the model has no linear layers to {}", text_of(setting),
                            mixed ? "multiply in 8 bits, of at least 32 rows and columns" : "store in codes"),
                "leave it out");
}

// A rate of products of codes that was measured.
bool measured(const Profile& profile) {
  return std::any_of(profile.products.begin(), profile.products.end(),
                     [](const ProductSample& sample) { return sample.multiply == kMultiplyInt8; });
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  const Setting& setting = chosen[quantize_training];
  if (!setting.taken())
    return {"off", "rounds the weights at every step: used only when named (--technique quantize-training=int8)"};
  Told told{text_of(setting), why_pinned(request, kQuantizeTraining), chosen.without(quantize_training)};
  if (setting.form != kMixed) return told;
  told.also = "; saves no memory: weights, gradients and states stay as they are";
  if (!measured(request.profile))
    told.also += fmt::format("; unmeasured products of 8-bit codes are assumed {} times as fast as fp32", kInt8Gain);
  return told;
}

}  // namespace

constinit const Technique quantize_training{
    .info = &kQuantizeTraining,
    .usual = "int8",
    .ladder = {6},
    .check = check,
    .verdict = verdict,
    .choices = choices,
    .model_pass = rewrite,
    .told = told,
    .record =
        [](const PlanRequest&, const Candidate& chosen, Choices& out) {
          const Setting& setting = chosen[quantize_training];
          if (setting.taken()) out.set("quantize_training", text_of(setting));
        },
    .as_pin = text_of,
};

}  // namespace headroom::techniques
