#include "passes/freeze.h"

#include "planner/technique.h"
#include "planner/techniques/list_setting.h"

namespace headroom::techniques {

namespace {

void freeze_weights(Assembly& a, const PlanRequest& request, const Candidate&) {
  a.frozen.merge(frozen_weights(a.graph, read_list(pin(request, kFreeze.name))));
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (!asked_for(request, kFreeze)) return {"off", "trains other weights: used only when named (--freeze)"};
  return {pin(request, kFreeze.name), "named by --freeze", chosen.without(freeze)};
}

}  // namespace

constinit const Technique freeze{
    .info = &kFreeze,
    .option = {"--freeze"},
    .usual = "embed_tokens",
    .choices = when_asked_for<kFreeze>,
    .model_pass = freeze_weights,
    .told = told,
};

}  // namespace headroom::techniques
