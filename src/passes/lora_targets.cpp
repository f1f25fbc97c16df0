#include "passes/lora_targets.h"

#include "passes/expert_adapters.h"
#include "passes/freeze.h"

namespace headroom {

std::string module_of(std::string_view weight) {
  constexpr std::string_view kWeight = ".weight";
  if (weight.ends_with(kWeight)) weight.remove_suffix(kWeight.size());
  return std::string(weight);
}

bool target_means(const std::string& target, const std::string& module) {
  return target == "all-linear" || pattern_means(target, module) || pattern_means(target, transformers_name(module));
}

ValueId product_weight(const Graph& graph, const Node& node) {
  if (!node.op || node.op->product().part != ProductPart::output) return kNone;
  const ValueId id = operand(node, "weight");
  const Value& weight = graph.value(id);
  return weight.persistent && weight.role == Role::parameter ? id : kNone;
}

std::set<ValueId> router_logits(const Graph& graph, RegionId region) {
  std::set<ValueId> logits;
  for (NodeId id : graph.region(region).nodes)
    if (const Node& node = graph.node(id); node.op && node.op->kind() == OpKind::router)
      logits.insert(operand(node, "logits"));
  return logits;
}

}  // namespace headroom
