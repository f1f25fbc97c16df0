#include "passes/low_rank_products.h"

#include "ir/rewrite.h"
#include "ops/linear/int8_blocks.h"
#include "ops/registry.h"

namespace headroom {
namespace {

constexpr Product kForward{ProductPart::output}, kInputGradient{ProductPart::input_gradient};

// The value that a product adds to its own: linear's residual, linear_dx's addend; or kNone.
ValueId added(const Node& node) {
  const ValueId residual = operand(node, "residual");
  return residual != kNone ? residual : operand(node, "addend");
}

class Joiner {
 public:
  explicit Joiner(Graph& graph) : graph_(graph), producers_(graph.values.size(), kNone), uses_(graph.values.size()) {}

  int64_t run() {
    for (const Region& region : graph_.regions) survey(region);
    int64_t count = 0;
    for (const Region& region : graph_.regions)
      for (NodeId id : region.nodes) count += int64_t{join(id)};
    remove_dead_nodes(graph_);
    return count;
  }

 private:
  void survey(const Region& region) {
    for (NodeId id : region.nodes) {
      for (ValueId input : graph_.node(id).inputs) ++uses_[static_cast<size_t>(input)];
      for (ValueId output : graph_.node(id).outputs) producers_[static_cast<size_t>(output)] = id;
    }
    for (ValueId result : region.results) ++uses_[static_cast<size_t>(result)];
  }

  bool join(NodeId id) {
    const Node& node = graph_.node(id);
    if (!node.op) return false;
    if (node.op->kind() == OpKind::sum) {
      const NodeId left = product_before(kForward, operand(node, "a"), id);
      const NodeId right = product_before(kForward, operand(node, "b"), id);
      return left != kNone && right != kNone && (merge(left, right, id) || merge(right, left, id));
    }
    const Product product = node.op->product();
    if (product != kForward && product != kInputGradient) return false;
    const NodeId other = product_before(product, added(node), id);
    return other != kNone && (merge(product == kForward ? other : id, product == kForward ? id : other, id) ||
                              (product == kInputGradient && merge(other, id, id)));
  }

  // The product that computes a value read only by node `id`, of the same block and stage.
  NodeId product_before(Product product, ValueId value, NodeId id) const {
    if (value == kNone) return kNone;
    const NodeId producer = producers_[static_cast<size_t>(value)];
    if (producer == kNone || uses_[static_cast<size_t>(value)] != 1) return kNone;
    const Node &node = graph_.node(producer), &reader = graph_.node(id);
    const bool near = node.block == reader.block && node.stage == reader.stage;
    return near && node.op && node.op->product() == product ? producer : kNone;
  }

  bool thin_beside(const Node& thin, const Node& wide) const {
    const auto depth = [&](const Node& node) { return graph_.value(first_factor(node)).type.shape.back(); };
    if (depth(thin).symbol >= 0 || depth(thin).constant > kLowRankMost) return false;
    if (depth(wide).symbol < 0 && depth(wide).constant <= depth(thin).constant) return false;
    const DType dtype = graph_.value(first_factor(wide)).type.dtype;
    const Type& factor = graph_.value(operand(thin, "weight")).type;  // in a tiny model the base itself may be thin
    return graph_.value(first_factor(thin)).type.dtype == dtype && factor.dtype == dtype && factor.storage.dense() &&
           thin.attrs.text("layout", "out_in") == "out_in" && thin.attrs.integer("bias") == 0 &&
           thin.attrs.integer("low_rank") == 0 && wide.attrs.integer("low_rank") == 0 &&
           !multiplies_int8_blocks(wide.attrs);
  }

  // Node `at` becomes the product of `wide` with that of `thin`; the addend of the earlier of the two is added.
  bool merge(NodeId wide_id, NodeId thin_id, NodeId at) {
    const Node wide = graph_.node(wide_id), thin = graph_.node(thin_id);
    if (!thin_beside(thin, wide)) return false;
    const Type& result = graph_.value(result_of(graph_.node(at))).type;
    for (const Node* node : {&wide, &thin})
      if (graph_.value(result_of(*node)).type.dtype != result.dtype) return false;
    const bool onto = at != wide_id && at != thin_id;
    if (onto && added(thin) != kNone) return false;
    const ValueId first_added = added(at == wide_id ? thin : wide);
    const bool is_forward = wide.op->product() == kForward;
    std::vector<ValueId> inputs = wide.inputs;
    if (added(wide) != kNone) inputs.pop_back();
    inputs.insert(inputs.end(), {first_factor(thin), operand(thin, "weight")});
    if (first_added != kNone) inputs.push_back(first_added);
    Node& node = graph_.node(at);
    node.op = wide.op;
    node.attrs = wide.attrs;
    node.attrs.set("low_rank", int64_t{1});
    node.attrs.set(is_forward ? "residual" : "addend", int64_t{first_added != kNone});
    node.inputs = std::move(inputs);
    return true;
  }

  Graph& graph_;
  std::vector<NodeId> producers_;
  std::vector<int32_t> uses_;
};

}  // namespace

int64_t join_low_rank_products(Graph& graph) { return Joiner(graph).run(); }

}  // namespace headroom
