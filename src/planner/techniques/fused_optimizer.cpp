#include "planner/techniques/fused_optimizer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "passes/fused_optimizer.h"
#include "planner/techniques/micro_batch.h"
#include "planner/techniques/precision.h"

namespace headroom::techniques {

namespace {

Verdict verdict(const PlanRequest& request) {
  if (!update_waits(request)) return {};
  if (scales_loss(request))
    return {"cannot skip a step with non-finite gradients, as a loss scale requires",
            "use --precision bf16-mixed, or leave fused-optimizer out"};
  return {"needs every gradient before the first update when clipping by global norm",
          "add --max-grad-norm 0, which trains without clipping"};
}

void check(const PlanRequest& request, const std::string& setting) {
  check_switch<kFusedOptimizer>(request, setting);
  const int64_t pinned = pinned_micro_batch(request);
  if (setting == "on" && !update_waits(request) && pinned > 0 && pinned < request.global_batch)
    throw Error(ErrorKind::usage,
                fmt::format("--technique fused-optimizer=on needs one micro-batch per step, not {} of {}",
                            request.global_batch, pinned),
                "leave the micro-batch to the planner, or make it the global batch size");
}

std::vector<Setting> choices(const PlanRequest& request, const Candidate& decided) {
  const bool takes =
      !update_waits(request) && !accumulates(request, decided) && pin(request, kFusedOptimizer.name) != "off";
  return {takes ? Setting{1} : Setting{}};
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (accumulates(request, chosen))
    return {"off",
            fmt::format("{} micro-batches accumulate into every gradient, so gradients outlive the backward pass",
                        accumulation_steps(request, micro_batch_of(chosen)))};
  if (gradients_outlive_layers(chosen)) return {"off", "not taken"};
  return {"on", "one micro-batch and no clipping: each gradient dies after its update",
          chosen.without(fused_optimizer)};
}

}  // namespace

constinit const Technique fused_optimizer{
    .info = &kFusedOptimizer,
    .ladder = {1},
    .check = check,
    .verdict = verdict,
    .choices = choices,
    .pass = [](Graph& graph, const PlanRequest&,
               const Candidate&) { fuse_optimizer(graph, graph.find_program("train_step")); },
    .told = told,
    .phrase = [](const Setting& setting) -> std::string { return setting.taken() ? "fused optimizer" : ""; },
    .record = [](const PlanRequest&, const Candidate& chosen,
                 Choices& out) { out.set("fused_optimizer", chosen[fused_optimizer].taken()); },
};

}  // namespace headroom::techniques

namespace headroom {

bool gradients_outlive_layers(const Candidate& candidate) { return !candidate[techniques::fused_optimizer].taken(); }

}  // namespace headroom
