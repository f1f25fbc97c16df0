#include "passes/norm_casts.h"

#include <unordered_map>

#include "ir/rewrite.h"

namespace headroom {
namespace {

bool casts_to_bf16(const Node& node) {
  return node.op && node.op->kind() == OpKind::cast && node.attrs.text("dtype") == "bf16";
}

}  // namespace

int64_t join_norm_casts(Graph& graph, const DeviceFacts& facts) {
  if (facts.is_cpu()) return 0;
  int64_t count = 0;
  std::vector<ValueId> replacement(graph.values.size(), kNone);
  for (Region& region : graph.regions) {
    std::unordered_map<ValueId, NodeId> norms;  // by their first outputs
    const auto joins = [&](NodeId id) {
      const Node& node = graph.node(id);
      if (node.op && node.op->writes_narrow_copy() && graph.value(result_of(node)).type.dtype == DType::f32)
        norms[result_of(node)] = id;
      if (!casts_to_bf16(node)) return false;
      const auto norm = norms.find(source_of(node));
      if (norm == norms.end()) return false;
      Node& gradient = graph.node(norm->second);
      if (gradient.attrs.integer("narrow") == 0) {
        gradient.attrs.set("narrow", int64_t{1});
        gradient.outputs.push_back(result_of(node));
      } else {
        replacement[static_cast<size_t>(result_of(node))] = gradient.outputs.back();
      }
      ++count;
      return true;
    };
    std::erase_if(region.nodes, joins);
  }
  replace_uses(graph, replacement);
  return count;
}

}  // namespace headroom
