#include "passes/matmul_precision.h"

#include "base/error.h"

namespace headroom {
namespace {

bool has_products(const Op& op) { return op.product().part != ProductPart::none || is_loss(op.cost_class()); }

}  // namespace

void set_matmul_precision(Graph& graph, std::string_view precision) {
  if (precision == "highest") return;
  HR_CHECK(precision == "high" || precision == "medium", "no matmul precision '{}'", precision);
  for (Node& node : graph.nodes) {
    if (!node.op || !has_products(*node.op)) continue;
    if (graph.value(first_factor(node)).type.dtype != DType::f32 || node.attrs.has("multiply")) continue;
    node.attrs.set("multiply", std::string(precision == "high" ? "bf16x3" : "bf16"));
  }
}

}  // namespace headroom
