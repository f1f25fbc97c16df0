#include "passes/vocabulary_slices.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "ir/graph_index.h"
#include "ir/rewrite.h"
#include "ir/row_slice.h"
#include "ops/registry.h"
#include "passes/update_slices.h"

namespace headroom {
namespace {

bool is_loss_node(const Node& node) { return node.op && is_loss(node.op->cost_class()); }

// None if the operand has another form than a dense matrix.
std::vector<RowSlice> slices_of(const Graph& graph, const Node& node, std::string_view operand_name, int64_t bytes) {
  const Type& type = graph.value(operand(node, operand_name)).type;
  if (!type.storage.dense() || type.shard || type.shape.size() != 2 || type.shape[0].symbol >= 0) return {};
  return slices_of(type, bytes);
}

std::vector<RowSlice> slices_of_head(const Graph& graph, const Node& loss, int64_t bytes) {
  if (loss.attrs.text("layout", "out_in") != "out_in" || operand(loss, "bias") != kNone) return {};
  return slices_of(graph, loss, "weight", bytes);
}

// The result in the storage of an operand.
ValueId& result_over(Node& node, std::string_view operand_name) {
  const size_t place = operand_place(*node.op, node.attrs, node.inputs.size(), operand_name);
  for (const Alias& alias : must_aliases(node))
    if (static_cast<size_t>(alias.input) == place) return node.outputs[static_cast<size_t>(alias.output)];
  HR_CHECK(false, "no result in the storage of {}", operand_name);
  return node.outputs.front();
}

// Writes a loss as calls on slices.
class Slicer {
 public:
  Slicer(Graph& graph, Node loss, std::vector<RowSlice> slices)
      : graph_(graph), loss_(std::move(loss)), slices_(std::move(slices)) {}

  // The nodes in order; the last ones have the outputs of the loss.
  std::vector<NodeId> nodes() {
    const bool gradient = loss_.op->cost_class() == CostClass::loss_grad;
    const ValueId softmax = add_softmax();
    add_sum(softmax, gradient ? "loss_accumulate" : "accumulate");
    if (gradient) add_gradient(softmax);
    return std::move(out_);
  }

 private:
  ValueId of(std::string_view name) const { return operand(loss_, name); }

  // The loss's attributes that a call on a slice has, too.
  Attrs attrs_of(const RowSlice& slice) const {
    Attrs attrs;
    for (const auto& [name, value] : loss_.attrs.items())
      for (const std::string_view kept : {"layout", "shift", "softcap", "multiply"})
        if (name == kept) attrs.set(name, value);
    set_row_slice(attrs, slice);
    return attrs;
  }

  Node& add(std::string_view op, std::vector<ValueId> inputs, Attrs attrs, Role role) {
    out_.push_back(make_node(graph_, find_op(op), std::move(inputs), std::move(attrs), loss_.block, loss_.stage, role));
    return graph_.node(out_.back());
  }

  ValueId add_softmax() {
    ValueId softmax = kNone;
    for (const RowSlice& slice : slices_)
      softmax = result_of(
          add("cross_entropy_slice", {of("x"), of("weight"), of("labels"), softmax}, attrs_of(slice), Role::workspace));
    return softmax;
  }

  void add_sum(ValueId softmax, std::string_view accumulate) {
    Attrs attrs{{"accumulate", std::string(loss_.attrs.text(accumulate, "always"))},
                {"vocabulary", slices_.back().first + slices_.back().rows}};
    for (const char* const name : {"shift", "hits"})
      if (loss_.attrs.has(name)) attrs.set(name, loss_.attrs.integer(name));
    result_of(add("cross_entropy_sum", {softmax, of("labels"), of("losses")}, std::move(attrs), Role::workspace)) =
        result_over(loss_, "losses");
  }

  void add_gradient(ValueId softmax) {
    const bool trains = loss_.attrs.integer("train_weight") != 0;
    ValueId dx = kNone, sums = trains ? of("accumulator") : kNone;
    for (const RowSlice& slice : slices_) {
      Attrs attrs = attrs_of(slice);
      attrs.set("adds", int64_t{dx != kNone}).set("train_weight", int64_t{trains});
      if (trains) attrs.set("accumulate", std::string(loss_.attrs.text("accumulate", "always")));
      Node& node =
          add("cross_entropy_slice_grad", {of("x"), of("weight"), of("labels"), softmax, of("scale"), dx, sums},
              std::move(attrs), Role::gradient);
      dx = node.outputs.front();
      if (trains) sums = result_over(node, "accumulator");
    }
    if (trains) result_over(graph_.node(out_.back()), "accumulator") = result_over(loss_, "accumulator");
    const DType narrow = graph_.value(of("x")).type.dtype;
    if (narrow != DType::f32) add("cast", {dx}, {{"dtype", std::string(dtype_name(narrow))}}, Role::gradient);
    graph_.node(out_.back()).outputs.front() = loss_.outputs.front();
  }

  Graph& graph_;
  Node loss_;
  const std::vector<RowSlice> slices_;
  std::vector<NodeId> out_;
};

// Writes a call that adds up over the rows of a matrix as calls on slices. The last one has its outputs.
std::vector<NodeId> sum_of_slices(Graph& graph, const Node whole, const std::vector<RowSlice>& slices) {
  std::vector<NodeId> calls;
  std::vector<ValueId> inputs = whole.inputs;
  const std::vector<Alias> in_place = must_aliases(whole);
  Attrs attrs = whole.attrs;
  attrs.set("slices", static_cast<int64_t>(slices.size()));
  for (const RowSlice& slice : slices) {
    set_row_slice(attrs, slice);
    calls.push_back(
        make_node(graph, *whole.op, inputs, attrs, whole.block, whole.stage, graph.value(whole.outputs.front()).role));
    const ValueId made = graph.node(calls.back()).outputs.front();
    if (!in_place.empty())
      inputs[static_cast<size_t>(in_place.front().input)] = made;
    else
      inputs = whole.inputs, inputs.push_back(made);
    if (attrs.text("accumulate") == "first") attrs.set("accumulate", "always");
  }
  graph.node(calls.back()).outputs = whole.outputs;
  return calls;
}

// The calls on slices that take the place of a node; none if it stays.
std::vector<NodeId> sliced(Graph& graph, NodeId id, int64_t bytes) {
  const Node& node = graph.node(id);
  if (is_loss_node(node)) {
    std::vector<RowSlice> slices = slices_of_head(graph, node, bytes);
    if (slices.size() > 1) return Slicer(graph, node, std::move(slices)).nodes();
  } else if (!node.op->summed_slices().empty()) {
    const std::vector<RowSlice> slices = slices_of(graph, node, node.op->summed_slices(), bytes);
    if (slices.size() > 1) return sum_of_slices(graph, node, slices);
  }
  return {};
}

}  // namespace

SlicedHead sliced_head(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (is_loss_node(node)) {
      const size_t slices = slices_of_head(graph, node, slice_bytes(graph)).size();
      return {graph.value(operand(node, "weight")).type.shape[0].constant, static_cast<int64_t>(slices)};
    }
  return {};
}

int slice_vocabulary(Graph& graph, int64_t bytes) {
  int count = 0;
  for (RegionId region = 0; region < static_cast<RegionId>(graph.regions.size()); ++region) {
    std::vector<NodeId> nodes;
    for (const NodeId id : std::vector<NodeId>(graph.region(region).nodes)) {
      const std::vector<NodeId> calls = sliced(graph, id, bytes);
      if (calls.empty()) nodes.push_back(id);
      nodes.insert(nodes.end(), calls.begin(), calls.end());
      count += calls.empty() ? 0 : 1;
    }
    graph.region(region).nodes = std::move(nodes);
  }
  return count;
}

}  // namespace headroom
