#include "passes/narrow_logits.h"

#include "ops/linear_cross_entropy/shape.h"

namespace headroom {

void narrow_logits(Graph& graph, const DeviceFacts& facts) {
  if (facts.is_cpu()) return;
  for (Node& node : graph.nodes)
    if (node.op && node.op->cost_class() == CostClass::loss_grad &&
        takes_narrow_logits(graph.value(operand(node, "x")).type.dtype, node.attrs))
      node.attrs.set("logits", std::string("bf16"));
}

}  // namespace headroom
