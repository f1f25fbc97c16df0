#include "passes/magnitudes.h"

#include <map>
#include <set>

#include "base/error.h"
#include "ir/builder.h"
#include "ir/rewrite.h"
#include "ops/registry.h"
#include "passes/expert_adapters.h"
#include "passes/lora.h"
#include "passes/lora_targets.h"

namespace headroom {
namespace {

constexpr std::string_view kMagnitude = ".lora_magnitude_vector";

}  // namespace

std::string magnitude_name(std::string_view weight) {
  return fmt::format("{}{}{}", kAdapterPrefix, transformers_name(module_of(weight)), kMagnitude);
}

std::string magnitude_beside(std::string_view matrix) {
  return fmt::format("{}{}", matrix.substr(0, matrix.rfind(".lora_")), kMagnitude);
}

bool is_magnitude_name(std::string_view name) { return name.starts_with(kAdapterPrefix) && name.ends_with(kMagnitude); }

ValueId lengths_from_load(Graph& graph, const AdaptedWeight& adapted) {
  const std::string name = graph.value(adapted.weight).name + "#row_lengths";
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id)
    if (graph.value(id).persistent && graph.value(id).name == name) return id;
  Builder load(graph, graph.find_program("load"), find_op);
  load.set_stage(Stage::transfer);
  const Type type{DType::f32, {graph.value(adapted.weight).type.shape[0]}};
  const ValueId lengths = load.persistent(name, type, Role::data);
  load.call("row_lengths", {adapted.weight, adapted.a, adapted.b, lengths}, {{"factor", adapted.factor}}, Role::data);
  return lengths;
}

void start_magnitudes(Graph& graph, RegionId region) {
  std::map<ValueId, NodeId> lengths;  // the nodes that compute them
  std::set<ValueId> started;
  Builder build(graph, add_program(graph, kStartMagnitudes), find_op);
  build.set_stage(Stage::transfer);
  for (NodeId id : std::vector<NodeId>(graph.region(region).nodes)) {
    const Node node = graph.node(id);
    if (node.op->kind() == OpKind::row_lengths) lengths[result_of(node)] = id;
    const auto at = lengths.find(operand(node, "lengths"));
    if (at == lengths.end() || !started.insert(operand(node, "magnitude")).second) continue;
    const Node of = graph.node(at->second);
    std::vector<ValueId> inputs = of.inputs;
    inputs.push_back(operand(node, "magnitude"));
    build.call("row_lengths", std::move(inputs), of.attrs, Role::parameter);
  }
}

void refuse_magnitude(const std::string& module, std::string_view why, std::string_view remedy) {
  throw Error(ErrorKind::usage, fmt::format("DoRA (--use-dora, use_dora) for {}: {}", module, why),
              std::string(remedy));
}

}  // namespace headroom
