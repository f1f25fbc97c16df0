#include "passes/bf16_mixed.h"

#include "planner/techniques/precision.h"

namespace headroom {
namespace techniques {
namespace {

std::vector<Setting> choices(const PlanRequest& request, const Candidate&) {
  if (!asked_for(request, kBf16Mixed)) return {Setting{}};
  return {{.count = 1, .form = kWeightCopies}, {.count = 1}};
}

void narrow(Assembly& a, const PlanRequest&, const Candidate& candidate) {
  narrow_to_bf16(a.graph, a.forward);
  if (candidate[bf16_mixed].form == kWeightCopies)
    a.copies = keep_weight_copies(a.graph, a.forward);
  else
    round_in_products(a.graph, a.forward);
}

Told told(const PlanRequest&, const Candidate& chosen) {
  if (!chosen[bf16_mixed].taken())
    return {"off", "changes the arithmetic: taken only when named (--precision bf16-mixed)"};
  return {.value = "on",
          .why = "named by --precision",
          .without = chosen.without(bf16_mixed),
          .also = chosen[bf16_mixed].form == kWeightCopies ? "; bf16 copies of the weights are kept"
                                                           : "; weights are rounded where they are multiplied",
          .if_larger = "; here it needs more memory than fp32: the copies outweigh the activations saved"};
}

}  // namespace

constinit const Technique bf16_mixed{
    .info = &kBf16Mixed,
    .check = check_switch<kBf16Mixed>,
    .choices = choices,
    .model_pass = narrow,
    .told = told,
    .phrase = [](const Setting& setting) -> std::string {
      return setting.form == kWeightCopies ? "bf16 weight copies" : "";
    },
    .record =
        [](const PlanRequest& request, const Candidate& chosen, Choices& out) {
          out.set("precision", precision_of(request));
          out.set("weight_copies", chosen[bf16_mixed].form == kWeightCopies);
        },
};

}  // namespace techniques

std::string precision_of(const PlanRequest& request) {
  for (const Technique* technique : {&techniques::bf16_mixed, &techniques::bf16_true})
    if (asked_for(request, *technique->info)) return std::string(technique->name());
  return "32-true";
}

void set_precision(PlanRequest& request, const std::string& precision) {
  if (precision != "32-true") request.techniques[precision] = {"on", "named by --precision"};
}

}  // namespace headroom
