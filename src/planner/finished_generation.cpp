#include "planner/finished_generation.h"

#include "ir/builder.h"
#include "ops/registry.h"
#include "passes/attention_kernels.h"
#include "passes/batch_invariant.h"
#include "passes/linear_groups.h"
#include "passes/narrow_weights.h"
#include "passes/norm_sums.h"
#include "planner/pipeline.h"
#include "planner/steps.h"
#include "planner/techniques/precision.h"

namespace headroom {

Graph finished_generation(const PlanRequest& request, Graph graph, std::span<const std::string> programs,
                          ProductRows rows, const LoraSlots& slots, bool verify) {
  const auto run = [&](const PassInfo& info, const auto& pass) { run_pass(info, graph, verify, nullptr, pass); };
  const auto run_on_each = [&](const PassInfo& info, const auto& pass) {
    run(info, [&](Graph& g) {
      for (const std::string& program : programs) pass(g, g.find_program(program));
    });
  };
  std::vector<RegionId> regions;
  for (const std::string& program : programs) regions.push_back(graph.find_program(program));
  for (const Technique* technique : techniques_of(PipelinePart::model)) {
    if (technique->inference_pass && asked_for(request, *technique->info))
      run(*technique->info, [&](Graph& g) { technique->inference_pass(g, regions, request); });
    if (technique->weights == WeightForm::adapted && slots.count > 0)
      run_on_each(kLoraSlots, [&](Graph& g, RegionId region) { add_lora_slots(g, region, slots); });
  }
  if (const Precision* const precision = narrow_precision_of(request); precision && !precision->keeps_fp32)
    run(*precision->technique, [&](Graph& g) { store_weights_to_read(g, precision->narrow); });
  if (rows == ProductRows::invariant)
    run_on_each(kBatchInvariant, [](Graph& g, RegionId region) { make_batch_invariant(g, region); });
  run_on_each(kLinearGroups, [](Graph& g, RegionId region) { group_linears(g, region); });
  run(kNormSums, [&](Graph& g) { join_norm_sums(g, request.facts); });
  run(kAttentionKernels, [&](Graph& g) {  // there is no gradient
    choose_attention_kernels(g, request.facts, request.profile, AttentionOrder::fixed);
  });
  run(kHostStage, [&](Graph& g) {
    Builder load(g, g.find_program("load"), find_op);
    load.set_stage(Stage::transfer);
    load.append("host_stage", {}, {{"bytes", request.staging_bytes}});
  });
  return graph;
}

}  // namespace headroom
