#include "planner/inference.h"

#include <algorithm>

#include "base/error.h"
#include "cost/timeline.h"
#include "ir/builder.h"
#include "ir/verify.h"
#include "memory/arenas.h"
#include "ops/registry.h"
#include "passes/bf16_true.h"
#include "passes/chunked_loss.h"
#include "passes/linear_groups.h"
#include "passes/micro_batch.h"
#include "planner/assemble.h"
#include "planner/emit.h"
#include "planner/search.h"

namespace headroom {
namespace {

Plan describe(const PlanRequest& request) {
  Plan plan;
  plan.model = request.model;
  plan.parameters = request.parameters;
  plan.budget_bytes = request.budget_bytes;
  plan.profile = request.profile.identity();
  plan.facts = request.facts;
  plan.process = request.process;
  plan.choices.seq_length = request.seq_length;
  plan.choices.precision = request.precision;
  plan.choices.matmul_precision = request.matmul_precision;
  return plan;
}

// Packs and emits a graph; feasible when it fits.
Plan lay_out(const PlanRequest& request, const Graph& graph, std::string_view timed) {
  verify_or_throw(graph, "assemble");
  Plan plan = describe(request);
  const Bindings bindings = graph.bounds();
  const Liveness liveness = analyze_liveness(graph, bindings, request.facts);
  PackOptions options;
  options.alignment = request.facts.alignment;
  emit_programs(graph, bindings, liveness, pack_arenas(liveness, options), request, plan);
  set_peaks(request, plan);
  plan.minimum_bytes = plan.peak_bytes;
  plan.step_seconds = predict_program(graph, graph.find_program(timed), bindings, 1, request.profile);
  return plan;
}

// The first plan that fits; else the smallest, refused.
class FirstFit {
 public:
  // True when this one is taken.
  bool offer(Plan plan) {
    least_ = std::min(least_, plan.minimum_bytes);
    best_ = std::move(plan);
    return best_.feasible;
  }
  Plan take() {
    best_.minimum_bytes = least_;
    if (!best_.feasible) {
      best_.cheapest_fix = "a larger --memory, or a shorter sequence";
      best_.peak_bytes = least_;
    }
    return std::move(best_);
  }

 private:
  Plan best_;
  int64_t least_ = INT64_MAX;
};

}  // namespace

Plan plan_evaluation(const PlanRequest& request) {
  const Graph assembled = assemble_evaluation(request);
  FirstFit fit;
  bool done = false;
  for (int64_t batch = request.global_batch; batch >= 1 && !done; batch = batch == 1 ? 0 : batch / 2) {
    const int64_t rows = batch * request.seq_length;
    for (int64_t chunk : {int64_t{1024}, int64_t{256}, int64_t{64}}) {
      if (chunk > rows && chunk != 64) continue;
      Graph graph = assembled;
      set_micro_batch(graph, batch);
      set_loss_chunk(graph, chunk);
      Plan plan = lay_out(request, graph, "evaluate");
      plan.choices.micro_batch = batch;
      plan.choices.loss_chunk = chunk;
      if ((done = fit.offer(std::move(plan)))) break;
    }
  }
  return fit.take();
}

Plan plan_generation(const PlanRequest& request, std::span<const int64_t> chunks,
                     const std::function<Graph(int64_t chunk)>& build) {
  FirstFit fit;
  for (int64_t chunk : chunks) {
    Graph graph = build(chunk);
    if (request.lora.rank > 0)
      for (const char* program : {"prefill", "decode"}) add_lora(graph, graph.find_program(program), request.lora);
    if (request.precision == "bf16-true") store_in_bf16(graph, Adapters::narrow);
    for (const char* program : {"prefill", "decode"}) group_linears(graph, graph.find_program(program));
    Builder load(graph, graph.find_program("load"), find_op);
    load.set_stage(Stage::transfer);
    load.append("host_stage", {}, {{"bytes", request.staging_bytes}});
    Plan plan = lay_out(request, graph, "decode");
    plan.choices.micro_batch = 1;
    plan.choices.loss_chunk = chunk;
    if (fit.offer(std::move(plan))) break;
  }
  return fit.take();
}

}  // namespace headroom
