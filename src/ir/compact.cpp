// compact(): keeps what the programs reach and renumbers it in the old order.
#include "ir/graph_index.h"
#include "ir/rewrite.h"

namespace headroom {
namespace {

// Dense new ids, in the order of the old ones, for the marked items.
std::vector<int32_t> renumber(const std::vector<char>& keep) {
  std::vector<int32_t> ids(keep.size(), kNone);
  int32_t next = 0;
  for (size_t i = 0; i < keep.size(); ++i)
    if (keep[i]) ids[i] = next++;
  return ids;
}

template <typename Item>
void keep_numbered(std::vector<Item>& items, const std::vector<int32_t>& ids) {
  size_t kept = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (ids[i] == kNone) continue;
    if (kept != i) items[kept] = std::move(items[i]);
    ++kept;
  }
  items.resize(kept);
}

void translate(std::vector<int32_t>& list, const std::vector<int32_t>& ids) {
  for (int32_t& id : list) id = ids[static_cast<size_t>(id)];
}

Renumbering number_reachable(const Graph& graph, UnusedPersistent unused) {
  const GraphIndex index(graph);
  std::vector<char> values(graph.values.size(), 0);
  std::vector<char> nodes(graph.nodes.size(), 0);
  std::vector<char> regions(graph.regions.size(), 0);
  const auto mark = [&](const std::vector<ValueId>& list) {
    for (ValueId id : list) values[static_cast<size_t>(id)] = 1;
  };
  for (NodeId id : index.order()) {
    nodes[static_cast<size_t>(id)] = 1;
    mark(graph.node(id).inputs);
    mark(graph.node(id).outputs);
  }
  for (size_t i = 0; i < regions.size(); ++i) {
    if (!index.region(static_cast<RegionId>(i)).reachable()) continue;
    regions[i] = 1;
    mark(graph.regions[i].params);
    mark(graph.regions[i].results);
  }
  if (unused == UnusedPersistent::keep)
    for (size_t i = 0; i < values.size(); ++i)
      if (graph.values[i].persistent) values[i] = 1;
  return {renumber(values), renumber(nodes), renumber(regions)};
}

}  // namespace

Renumbering compact(Graph& graph, UnusedPersistent unused) {
  Renumbering ids = number_reachable(graph, unused);
  keep_numbered(graph.values, ids.values);
  keep_numbered(graph.nodes, ids.nodes);
  keep_numbered(graph.regions, ids.regions);
  for (Node& node : graph.nodes) {
    translate(node.inputs, ids.values);
    translate(node.outputs, ids.values);
    if (is_loop(node)) node.body = ids.regions[static_cast<size_t>(node.body)];
  }
  for (Region& region : graph.regions) {
    translate(region.params, ids.values);
    translate(region.results, ids.values);
    translate(region.nodes, ids.nodes);
  }
  for (Program& program : graph.programs) program.region = ids.regions[static_cast<size_t>(program.region)];
  return ids;
}

}  // namespace headroom
