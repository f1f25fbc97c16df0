#include "passes/packing.h"

#include "base/error.h"
#include "ir/builder.h"
#include "ir/rewrite.h"

namespace headroom {

void pack_rows(Graph& graph, RegionId region) {
  ValueId starts = kNone;
  for (const NodeId id : graph.region(region).nodes) {
    if (graph.node(id).op->kind() == OpKind::next_batch) {
      HR_CHECK(starts == kNone, "two batches");
      starts = add_value(graph, graph.value(result_of(graph.node(id))).type, Role::data);
      Node& batch = graph.node(id);
      batch.attrs.set("segments", int64_t{1});
      batch.outputs.push_back(starts);
      continue;
    }
    Node& node = graph.node(id);
    if (!node.op->take_segments(node.attrs)) continue;
    HR_CHECK(starts != kNone, "{} stands before the batch", op_name(*node.op));
    node.inputs.push_back(starts);
    infer_again(graph, id);  // refuses a call that has segments already
  }
  HR_CHECK(starts != kNone, "there is no batch");
}

}  // namespace headroom
