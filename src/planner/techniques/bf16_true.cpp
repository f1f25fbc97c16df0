#include "passes/bf16_true.h"

#include "passes/bf16_mixed.h"
#include "planner/techniques/precision.h"

namespace headroom::techniques {
namespace {

void store(Assembly& a, const PlanRequest&, const Candidate&) {
  store_in_bf16(a.graph, a.trains ? Adapters::wide : Adapters::narrow);
  round_in_products(a.graph, a.forward);
}

Told told(const PlanRequest&, const Candidate& chosen) {
  if (!chosen[bf16_true].taken())
    return {"off", "changes the arithmetic: taken only when named (--precision bf16-true)"};
  return {"on", "named by --precision", chosen.without(bf16_true)};
}

}  // namespace

constinit const Technique bf16_true{
    .info = &kBf16True,
    .check = check_switch<kBf16True>,
    .choices = when_asked_for<kBf16True>,
    .model_pass = store,
    .told = told,
};

}  // namespace headroom::techniques
