// Rules that make a graph walkable. The first checks every id, so the others may follow them.
#include <algorithm>

#include "ir/limits.h"
#include "ir/type_rules.h"
#include "ir/verify_rules.h"

namespace headroom {
namespace {

bool within(int32_t id, size_t count) { return id >= 0 && static_cast<size_t>(id) < count; }

void check_values(const Graph& graph, const std::vector<ValueId>& ids, NodeId node, const char* what,
                  Findings& findings) {
  for (ValueId id : ids)
    if (!within(id, graph.values.size()))
      findings.add(node, "{} %{} does not exist, the graph has {} values", what, id, graph.values.size());
}

// Sorts the names and reports each one that equals the one before it.
template <typename Report>
void each_duplicate(std::vector<std::string_view>& names, const Report& report) {
  std::sort(names.begin(), names.end());
  for (size_t i = 1; i < names.size(); ++i)
    if (names[i] == names[i - 1]) report(names[i]);
}

}  // namespace

void check_ids_in_range(const Graph& graph, Findings& findings) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto id = static_cast<NodeId>(i);
    if (!node.op) findings.add(id, "node {} has no op", id);
    check_values(graph, node.inputs, id, "input", findings);
    check_values(graph, node.outputs, id, "output", findings);
    if (is_loop(node) && !within(node.body, graph.regions.size()))
      findings.add(id, "body region {} does not exist, the graph has {} regions", node.body, graph.regions.size());
  }
  for (const Region& region : graph.regions) {
    check_values(graph, region.params, kNone, "param", findings);
    check_values(graph, region.results, kNone, "result", findings);
    for (NodeId id : region.nodes)
      if (!within(id, graph.nodes.size()))
        findings.add(kNone, "a region lists node {}, the graph has {} nodes", id, graph.nodes.size());
  }
  for (const Program& program : graph.programs)
    if (!within(program.region, graph.regions.size()))
      findings.add(kNone, "region {} of program {} does not exist", program.region, program.name);
}

void check_nested_once(const Graph& graph, Findings& findings) {
  struct Entry {
    RegionId region;
    int depth;
  };
  std::vector<char> regions(graph.regions.size(), 0);
  std::vector<char> nodes(graph.nodes.size(), 0);
  std::vector<Entry> pending;
  const auto enter = [&](RegionId region, NodeId owner, int depth) {
    char& seen = regions[static_cast<size_t>(region)];
    if (seen) return findings.add(owner, "region {} has two owners", region);
    if (depth > kMaxLoopDepth) return findings.add(owner, "loops are nested more than {} deep", kMaxLoopDepth);
    seen = 1;
    pending.push_back({region, depth});
  };
  for (const Program& program : graph.programs) enter(program.region, kNone, 0);
  while (!pending.empty()) {
    const Entry entry = pending.back();
    pending.pop_back();
    for (NodeId id : graph.region(entry.region).nodes) {
      char& seen = nodes[static_cast<size_t>(id)];
      if (seen) {
        findings.add(id, "node {} is listed twice", id);
        continue;
      }
      seen = 1;
      if (is_loop(graph.node(id))) enter(graph.node(id).body, id, entry.depth + 1);
    }
  }
}

void check_loop_shape(const Graph& graph, Findings& findings) {
  for (const Region& region : graph.regions)
    for (NodeId id : region.nodes) {
      const Node& node = graph.node(id);
      const bool named_loop = node.op->kind() == OpKind::loop;
      if (named_loop != is_loop(node)) {
        findings.add(id, "{}", named_loop ? "the loop has no body" : "the node has a body and is not a loop");
        continue;
      }
      if (!is_loop(node)) continue;
      const Region& body = graph.region(node.body);
      const size_t count = node.inputs.size();
      if (body.params.size() != count || body.results.size() != count || node.outputs.size() != count)
        findings.add(id, "the loop has {} inputs, {} params, {} results and {} outputs", count, body.params.size(),
                     body.results.size(), node.outputs.size());
    }
}

void check_symbol_in_range(const Graph& graph, Findings& findings) {
  if (graph.symbols.size() > kMaxSymbols)
    findings.add(kNone, "{} symbols are more than {}", graph.symbols.size(), kMaxSymbols);
  std::vector<std::string_view> names;
  for (const Symbol& symbol : graph.symbols) {
    names.push_back(symbol.name);
    if (symbol.bound < 1 || symbol.bound > kMaxElements)
      findings.add(kNone, "symbol {} has bound {}, outside 1 to {}", symbol.name, symbol.bound, kMaxElements);
  }
  each_duplicate(names, [&](std::string_view name) { findings.add(kNone, "symbol {} is declared twice", name); });
  for (size_t i = 0; i < graph.values.size(); ++i)
    for (const Dim& dim : graph.values[i].type.shape)
      if (dim.symbol >= 0 && !within(dim.symbol, graph.symbols.size()))
        findings.add(kNone, "value %{} uses symbol {}, the graph has {} symbols", i, dim.symbol, graph.symbols.size());
}

void check_type_well_formed(const Graph& graph, Findings& findings) {
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const std::string problem = type_problem(graph.values[i].type, graph.symbols);
    if (!problem.empty()) findings.add(kNone, "value %{}: {}", i, problem);
  }
}

void check_node_block_range(const Graph& graph, Findings& findings) {
  for (const Region& region : graph.regions)
    for (NodeId id : region.nodes)
      if (const int32_t block = graph.node(id).block; block < kNone || block > kMaxBlockId)
        findings.add(id, "block {} is outside 0 to {}", block, kMaxBlockId);
}

void check_program_names(const Graph& graph, Findings& findings) {
  if (graph.programs.size() > kMaxPrograms)
    findings.add(kNone, "{} programs are more than {}", graph.programs.size(), kMaxPrograms);
  std::vector<std::string_view> names;
  for (const Program& program : graph.programs) names.push_back(program.name);
  each_duplicate(names, [&](std::string_view name) { findings.add(kNone, "two programs are named {}", name); });
}

void check_persistent_names(const Graph& graph, Findings& findings) {
  std::vector<std::string_view> names;
  for (const Value& value : graph.values)
    if (value.persistent && !value.name.empty()) names.push_back(value.name);
  each_duplicate(names,
                 [&](std::string_view name) { findings.add(kNone, "two persistent values are named {}", name); });
}

}  // namespace headroom
