#include "passes/quantize_activations.h"

#include "ops/linear/int8_blocks.h"
#include "ops/registry.h"

namespace headroom {

int64_t quantize_activations(Graph& graph, RegionId region) {
  int64_t count = 0;
  for (const NodeId id : graph.region(region).nodes) {
    Node& node = graph.node(id);
    if (!node.op || node.op->product() != Product{ProductPart::output, ProductMatrices::one}) continue;
    const Type& weight = graph.value(operand(node, "weight")).type;
    if (!has_int8_blocks(weight.storage, weight.shape.back().constant)) continue;
    if (!is_out_in(node.attrs) || node.attrs.integer("low_rank") != 0) continue;
    node.attrs.set("multiply", std::string(kMultiplyInt8Blocks));
    ++count;
  }
  return count;
}

}  // namespace headroom
