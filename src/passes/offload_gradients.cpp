#include "passes/offload_gradients.h"

#include <set>

#include "ir/tier_bytes.h"
#include "passes/device_windows.h"

namespace headroom {
namespace {

// The node that allocates the accumulators of matrices carried by a loop of a region.
std::vector<NodeId> carried_matrices(const Graph& graph, RegionId region) {
  std::set<ValueId> carried;
  for (NodeId id : graph.region(region).nodes)
    if (const Node& node = graph.node(id); is_loop(node)) carried.insert(node.inputs.begin(), node.inputs.end());
  std::vector<NodeId> out;
  for (NodeId id : graph.region(region).nodes) {
    const Node& node = graph.node(id);
    if (node.op->kind() != OpKind::allocate || !carried.contains(result_of(node))) continue;
    const Value& value = graph.value(result_of(node));
    if (value.role == Role::gradient && value.type.shape.size() >= 2) out.push_back(id);
  }
  return out;
}

// The first addition of a step to an accumulator, which overwrites in the loop's first iteration, or a cast into it.
bool is_first_addition(const Node& node, ValueId value) {
  return node.attrs.text("accumulate") == "carried" ||
         (node.op->kind() == OpKind::cast && operand(node, "storage") == value);
}

}  // namespace

void offload_gradients(Graph& graph, Tier to, int64_t depth, bool accumulates) {
  std::vector<bool> gradients(graph.values.size(), false);
  for (const Program& program : graph.programs)
    for (NodeId id : carried_matrices(graph, program.region)) {
      graph.node(id).attrs.set("tier", std::string(tier_name(to)));
      gradients[static_cast<size_t>(result_of(graph.node(id)))] = true;
    }
  move_to(to, graph, gradients);
  open_windows(graph, depth, accumulates ? Overwrites{} : is_first_addition);
}

}  // namespace headroom
