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
#include "planner/technique.h"
#include "planner/techniques/lora.h"
#include "planner/techniques/precision.h"

namespace headroom {

Graph finished_generation(const PlanRequest& request, Graph graph, std::span<const std::string> programs,
                          ProductRows rows, const LoraSlots& slots) {
  const auto of_each = [&](const auto& pass) {
    for (const std::string& program : programs) pass(graph.find_program(program));
  };
  if (const LoraOptions lora = requested_lora(request); lora.rank > 0)
    of_each([&](RegionId region) { add_lora(graph, region, lora); });
  if (slots.count > 0) of_each([&](RegionId region) { add_lora_slots(graph, region, slots); });
  if (asked_for(request, kQuantizeWeights))
    quantize_weights(graph, graph.find_program(programs.front()), pin(request, kQuantizeWeights.name), nullptr);
  if (asked_for(request, kQat))
    of_each([&](RegionId region) { fake_quantize(graph, region, pin(request, kQat.name)); });
  if (const Precision* const precision = narrow_precision_of(request); precision && !precision->keeps_fp32)
    store_weights_to_read(graph, precision->narrow);
  if (rows == ProductRows::invariant) of_each([&](RegionId region) { make_batch_invariant(graph, region); });
  of_each([&](RegionId region) { group_linears(graph, region); });
  join_norm_sums(graph, request.facts);
  choose_attention_kernels(graph, request.facts, request.profile, AttentionOrder::fixed);  // there is no gradient
  Builder load(graph, graph.find_program("load"), find_op);
  load.set_stage(Stage::transfer);
  load.append("host_stage", {}, {{"bytes", request.staging_bytes}});
  return graph;
}

}  // namespace headroom
