#include "passes/update_slices.h"

#include <algorithm>
#include <numeric>

#include "base/bytes.h"
#include "ir/graph_index.h"
#include "ir/rewrite.h"
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

// Smaller slices would save too little to matter.
constexpr int64_t kLeastSliceBytes = 64 * 1024;

// Blocks of f32 and of a bf16 copy, which is half as wide.
int64_t slice_rows(const Type& type, int64_t bytes) {
  const int64_t row = row_bytes(type);
  const int64_t blocks = kDiskBlockBytes / std::gcd(kDiskBlockBytes, row / 2);
  return align_up(std::max<int64_t>(1, bytes / row), blocks);
}

// Turns the node into the update of the last slice; returns the updates of the slices before it.
std::vector<NodeId> slice_update(Graph& graph, NodeId id, const std::vector<RowSlice>& slices) {
  std::vector<NodeId> before;
  for (const RowSlice& slice : slices) {
    set_row_slice(graph.node(id).attrs, slice);
    if (slice == slices.back()) break;
    const Node node = graph.node(id);
    before.push_back(make_node(graph, *node.op, node.inputs, node.attrs, node.block, node.stage));
    for (const Alias& alias : must_aliases(node))
      graph.node(id).inputs[static_cast<size_t>(alias.input)] =
          graph.node(before.back()).outputs[static_cast<size_t>(alias.output)];
  }
  return before;
}

}  // namespace

std::vector<RowSlice> slices_of(const Type& matrix, int64_t bytes) {
  const int64_t all = matrix.shape[0].constant, rows = slice_rows(matrix, bytes);
  std::vector<RowSlice> slices;
  for (int64_t first = 0; first < all; first += rows) slices.push_back({first, std::min(rows, all - first)});
  return slices;
}

int64_t slice_bytes(const Graph& graph) {
  int64_t largest = kLeastSliceBytes;
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
      const std::vector<RowSlice> cuts = slices_of(type, bytes);
      if (cuts.size() < 2) continue;
      for (NodeId slice : slice_update(graph, nodes[at], cuts)) slices.push_back({static_cast<int32_t>(at), slice});
    }
    insert_all(graph, region, std::move(slices));
  }
}

}  // namespace headroom
