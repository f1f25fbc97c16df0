#include "planner/finished_generation.h"

#include "ir/builder.h"
#include "ops/registry.h"
#include "passes/attention_kernels.h"
#include "passes/batch_invariant.h"
#include "passes/linear_groups.h"
#include "passes/narrow_weights.h"
#include "passes/norm_sums.h"
#include "passes/qat.h"
#include "passes/quantize_weights.h"
#include "planner/steps.h"
#include "planner/technique.h"
#include "planner/techniques/lora.h"
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
  if (const LoraOptions lora = requested_lora(request); lora.rank > 0)
    run_on_each(kLora, [&](Graph& g, RegionId region) { add_lora(g, region, lora); });
  if (slots.count > 0) run_on_each(kLoraSlots, [&](Graph& g, RegionId region) { add_lora_slots(g, region, slots); });
  if (asked_for(request, kQuantizeWeights))
    run(kQuantizeWeights, [&](Graph& g) {
      quantize_weights(g, g.find_program(programs.front()), pin(request, kQuantizeWeights.name), nullptr);
    });
  if (asked_for(request, kQat))
    run_on_each(kQat, [&](Graph& g, RegionId region) { fake_quantize(g, region, pin(request, kQat.name)); });
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
