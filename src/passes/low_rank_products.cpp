#include "passes/low_rank_products.h"

#include "ir/rewrite.h"
#include "ops/registry.h"

namespace headroom {
namespace {

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
    const std::string_view op = graph_.node(id).op ? graph_.node(id).op->name() : "";
    const std::vector<ValueId> inputs = graph_.node(id).inputs;
    if (op == "add" && inputs.size() == 2) {
      const NodeId left = product_before("linear", inputs[0], id), right = product_before("linear", inputs[1], id);
      return left != kNone && right != kNone && (merge(left, right, id) || merge(right, left, id));
    }
    if (op == "linear" && graph_.node(id).attrs.integer("residual") != 0) {
      const NodeId wide = product_before(op, inputs.back(), id);
      return wide != kNone && merge(wide, id, id);
    }
    if (op == "linear_dx" && graph_.node(id).attrs.integer("addend") != 0) {
      const NodeId other = product_before(op, inputs.back(), id);
      return other != kNone && (merge(id, other, id) || merge(other, id, id));
    }
    return false;
  }

  // The product that computes a value which only node `id`, of the same block and stage, reads.
  NodeId product_before(std::string_view op, ValueId value, NodeId id) const {
    const NodeId producer = producers_[static_cast<size_t>(value)];
    if (producer == kNone || uses_[static_cast<size_t>(value)] != 1) return kNone;
    const Node &node = graph_.node(producer), &reader = graph_.node(id);
    const bool near = node.block == reader.block && node.stage == reader.stage;
    return near && node.op && node.op->name() == op ? producer : kNone;
  }

  static bool has_last(const Node& node) {
    return node.attrs.integer("residual") != 0 || node.attrs.integer("addend") != 0;
  }

  bool thin_beside(const Node& thin, const Node& wide) const {
    const auto depth = [&](const Node& node) { return graph_.value(node.inputs[0]).type.shape.back(); };
    if (depth(thin).symbol >= 0 || depth(thin).constant > kLowRankMost) return false;
    if (depth(wide).symbol < 0 && depth(wide).constant <= depth(thin).constant) return false;
    const DType dtype = graph_.value(wide.inputs[0]).type.dtype;
    return graph_.value(thin.inputs[0]).type.dtype == dtype && graph_.value(thin.inputs[1]).type.dtype == dtype &&
           thin.attrs.text("layout", "out_in") == "out_in" && thin.attrs.integer("bias") == 0 &&
           thin.attrs.integer("low_rank") == 0 && wide.attrs.integer("low_rank") == 0;
  }

  // Node `at` becomes the product of `wide` with that of `thin`; what the earlier of the two adds is added.
  bool merge(NodeId wide_id, NodeId thin_id, NodeId at) {
    const Node wide = graph_.node(wide_id), thin = graph_.node(thin_id);
    if (!thin_beside(thin, wide)) return false;
    const Type& result = graph_.value(graph_.node(at).outputs[0]).type;
    for (const Node* node : {&wide, &thin})
      if (graph_.value(node->outputs[0]).type.dtype != result.dtype) return false;
    const bool onto = at != wide_id && at != thin_id;
    if (onto && has_last(thin)) return false;
    const Node& first = at == wide_id ? thin : wide;
    const bool is_forward = wide.op->name() == "linear";
    std::vector<ValueId> inputs = wide.inputs;
    if (has_last(wide)) inputs.pop_back();
    inputs.insert(inputs.end(), {thin.inputs[0], thin.inputs[1]});
    if (has_last(first)) inputs.push_back(first.inputs.back());
    Node& node = graph_.node(at);
    node.op = wide.op;
    node.attrs = wide.attrs;
    node.attrs.set("low_rank", int64_t{1});
    node.attrs.set(is_forward ? "residual" : "addend", int64_t{has_last(first)});
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
