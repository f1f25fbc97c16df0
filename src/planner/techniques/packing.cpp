#include "passes/packing.h"

#include "planner/technique.h"

namespace headroom::techniques {

namespace {

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (!asked_for(request, kPacking))
    return {"off", "other rows would share a step: used only when named (--packing true) or allowed"};
  return {.value = "on",
          .why = {},
          .without = chosen.without(packing),
          .also = "; a sequence of the global batch is several rows"};
}

}  // namespace

constinit const Technique packing{
    .info = &kPacking,
    .option = {"--packing", "true", "on"},
    .by_permission = true,
    .check = check_switch<kPacking>,
    .choices = when_asked_for<kPacking>,
    .model_pass = [](Assembly& a, const PlanRequest&, const Candidate&) { pack_rows(a.graph, a.forward); },
    .told = told,
    .record = [](const PlanRequest&, const Candidate& chosen,
                 Choices& choices) { choices.set("packing", chosen[packing].taken()); },
};

}  // namespace headroom::techniques
