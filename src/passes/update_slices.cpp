#include "passes/update_slices.h"

#include <algorithm>
#include <numeric>

#include "base/bytes.h"
#include "ir/graph_index.h"
#include "ir/rewrite.h"
#include "ir/row_slice.h"
#include "ir/tier_bytes.h"

namespace headroom {
namespace {

const Type& updated_type(const Graph& graph, const Node& node) { return graph.value(operand(node, "weight")).type; }

// Bytes of one row as f32.
int64_t row_bytes(const Type& type) {
  int64_t bytes = dtype_bytes(DType::f32);
  for (size_t i = 1; i < type.shape.size(); ++i) bytes *= type.shape[i].constant;
  return bytes;
}

// Turns the node into the update of the last slice; returns the updates of the slices before it.
std::vector<NodeId> slice_update(Graph& graph, NodeId id, int64_t rows) {
  const int64_t all = updated_type(graph, graph.node(id)).shape[0].constant;
  std::vector<NodeId> before;
  for (int64_t first = 0; first < all; first += rows) {
    set_row_slice(graph.node(id).attrs, {first, std::min(rows, all - first)});
    if (first + rows >= all) break;
    const Node node = graph.node(id);
    before.push_back(make_node(graph, *node.op, node.inputs, node.attrs, node.block, node.stage));
    for (const Alias& alias : must_aliases(node))
      graph.node(id).inputs[static_cast<size_t>(alias.input)] =
          graph.node(before.back()).outputs[static_cast<size_t>(alias.output)];
  }
  return before;
}

}  // namespace

// Blocks of f32 and of a bf16 copy, which is half as wide.
int64_t slice_rows(const Type& type, int64_t bytes) {
  const int64_t row = row_bytes(type);
  const int64_t blocks = kDiskBlockBytes / std::gcd(kDiskBlockBytes, row / 2);
  return align_up(std::max<int64_t>(1, bytes / row), blocks);
}

int64_t slice_bytes(const Graph& graph) { return std::max(kLeastSliceBytes, largest_layer_matrix(graph)); }

int64_t largest_layer_matrix(const Graph& graph) {
  int64_t largest = 0;
  for (const Node& node : graph.nodes) {
    if (node.block == kNone) continue;
    for (ValueId input : node.inputs)
      if (const Value& value = graph.value(input); value.persistent && value.type.shape.size() >= 2)
        largest = std::max(largest, row_bytes(value.type) * value.type.shape[0].constant);
  }
  return largest;
}

void slice_updates(Graph& graph, int64_t bytes) {
  for (RegionId region = 0; region < static_cast<RegionId>(graph.regions.size()); ++region) {
    std::vector<Insertion> slices;
    const std::vector<NodeId> nodes = graph.region(region).nodes;
    for (size_t at = 0; at < nodes.size(); ++at) {
      const Node& node = graph.node(nodes[at]);
      if (node.op->kind() != OpKind::update || node.op->update_grain() != 1) continue;
      const Type& type = updated_type(graph, node);
      if (type.shape.size() < 2 || !type.storage.dense() || row_slice(node.attrs)) continue;
      const int64_t rows = slice_rows(type, bytes);
      if (rows >= type.shape[0].constant) continue;
      for (NodeId slice : slice_update(graph, nodes[at], rows)) slices.push_back({static_cast<int32_t>(at), slice});
    }
    insert_all(graph, region, std::move(slices));
  }
}

}  // namespace headroom
