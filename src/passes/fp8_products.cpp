#include "passes/fp8_products.h"

#include "base/error.h"
#include "cost/predict.h"
#include "ir/call_types.h"
#include "ops/linear/cuda_fp8_scratch.h"

namespace headroom {
namespace {

// A linear layer's product whose input is bf16; its weight may be wider, or stored as codes.
bool may_be_fp8(const Graph& graph, const Node& node) {
  if (!node.op || node.op->product().part == ProductPart::none) return false;
  return node.op->product().matrices == ProductMatrices::one &&
         graph.value(first_factor(node)).type.dtype == DType::bf16;
}

}  // namespace

std::string fp8_refusal(const DeviceFacts& facts) {
  if (has_fp8_tensor_cores(facts)) return {};
  if (facts.is_cpu()) return "a CPU has no products in fp8";
  return fmt::format("compute capability {} has no products in fp8, which begin with 8.9",
                     compute_capability_name(compute_capability(facts)));
}

int64_t multiply_in_fp8(Graph& graph, const Profile& profile) {
  const Bindings bounds = graph.bounds();
  CallTypes types;
  int64_t count = 0;
  for (Node& node : graph.nodes) {
    if (!may_be_fp8(graph, node)) continue;
    const OpCall call = types.of(graph, node, bounds);
    const ProductShape shape = node.op->product_shape(call);
    if (!fits_fp8(16, shape.outs, shape.ins)) continue;
    Attrs attrs = node.attrs;
    attrs.set("multiply", std::string(kMultiplyFp8));
    const double as_it_is = predict_call(*node.op, call, profile);
    if (predict_call(*node.op, {call.inputs, call.outputs, attrs}, profile) >= as_it_is) continue;
    node.attrs = std::move(attrs);
    ++count;
  }
  return count;
}

}  // namespace headroom
