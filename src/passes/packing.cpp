#include "passes/packing.h"

#include "base/error.h"
#include "ir/builder.h"

namespace headroom {
namespace {

bool reads_positions(const Node& node) {
  return node.op->name() == "attention" || node.op->name() == "rotary" || node.op->name() == "position_embedding";
}

}  // namespace

void pack_rows(Graph& graph, RegionId region) {
  ValueId starts = kNone;
  for (const NodeId id : graph.region(region).nodes) {
    if (graph.node(id).op->name() == "next_batch") {
      HR_CHECK(starts == kNone, "two batches");
      starts = add_value(graph, graph.value(graph.node(id).outputs.at(0)).type, Role::data);
      Node& batch = graph.node(id);
      batch.attrs.set("segments", int64_t{1});
      batch.outputs.push_back(starts);
      continue;
    }
    Node& node = graph.node(id);
    if (!reads_positions(node)) continue;
    const size_t plain = node.op->name() != "attention" ? 2 : node.attrs.real("dropout", 0) > 0 ? 4 : 3;
    HR_CHECK(starts != kNone && node.inputs.size() == plain, "{} has {} inputs, {} expected", node.op->name(),
             node.inputs.size(), plain);
    node.inputs.push_back(starts);
    if (node.op->name() == "rotary") node.attrs.set("segments", int64_t{1});
  }
  HR_CHECK(starts != kNone, "there is no batch");
}

}  // namespace headroom
