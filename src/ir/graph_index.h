// Where every value is defined and read, and in what order: one linear pass over the programs of a graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace headroom {

// One use of a value: input `operand` of `node`, or result `operand` of `region` (then `node` is kNone and `position`
// is one past the last node).
struct Use {
  NodeId node = kNone;
  RegionId region = kNone;
  int32_t position = 0;  // index in region.nodes
  int32_t operand = 0;
  int32_t time = 0;
};

// Where a value comes from: output `index` of `node`, or param `index` of `region` (`node` is kNone, `position` -1). A
// persistent value has region kNone and is visible everywhere; the same holds for a value that no reachable node
// produces, with `index` -1.
struct Definition {
  NodeId node = kNone;
  RegionId region = kNone;
  int32_t position = -1;
  int32_t index = -1;
  int32_t time = -1;
};

// The place of a region: the loop node that owns it (kNone for the region of a program), its program, and the ticks at
// which it begins and ends.
struct RegionPlace {
  NodeId owner = kNone;
  int32_t program = kNone;
  int32_t begin = -1;
  int32_t end = -1;
  bool reachable() const { return program != kNone; }
};

// The place of a node; `region` is kNone if no reachable region lists it. A loop reads its inputs at `time` and defines
// its outputs at `done`, after its body; for other nodes both are the same tick.
struct NodePlace {
  RegionId region = kNone;
  int32_t position = -1;
  int32_t time = -1;
  int32_t done = -1;
};

// A snapshot: rewriting the graph makes it stale. Time counts ticks in print order: programs in order, the body of a
// loop between the loop's `time` and `done`. The graph's ids must be in range and every region must have one owner (the
// verifier's structural rules). Linear in the graph's size; const calls are thread-safe.
class GraphIndex {
 public:
  explicit GraphIndex(const Graph& graph);

  const Graph& graph() const { return *graph_; }
  // The uses of a value in ascending time. Nodes that no region lists are not counted.
  std::span<const Use> uses(ValueId id) const;
  bool used(ValueId id) const { return !uses(id).empty(); }
  const Definition& definition(ValueId id) const { return definitions_[static_cast<size_t>(id)]; }
  const RegionPlace& region(RegionId id) const { return regions_[static_cast<size_t>(id)]; }
  const NodePlace& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  // Every reachable node in ascending time.
  std::span<const NodeId> order() const { return order_; }
  // True if `inner` is `outer` or lies in a loop nested in it; false if either is kNone or unreachable.
  bool encloses(RegionId outer, RegionId inner) const;
  // Values with more than one definition (a broken graph), in the order of their second definitions.
  std::span<const ValueId> redefined() const { return redefined_; }

 private:
  void walk(RegionId region, NodeId owner, int32_t program);
  void define(ValueId id, const Definition& definition);
  void collect_uses();

  const Graph* graph_;
  std::vector<Definition> definitions_;
  std::vector<RegionPlace> regions_;
  std::vector<NodePlace> nodes_;
  std::vector<NodeId> order_;
  std::vector<ValueId> redefined_;
  std::vector<Use> uses_;           // grouped by value
  std::vector<int32_t> first_use_;  // per value, plus the end
  int32_t clock_ = 0;
};

// The must-aliases of a node: its op's own, or one per carried value for a loop (input i, output i).
std::vector<Alias> must_aliases(const Node& node);

// The value whose storage each value uses, through chains of must-aliases and loops: an output maps to the root of the
// input that it must alias, a loop's output and its body's param to the root of the loop's input. Roots map to
// themselves. By ValueId.
std::vector<ValueId> storage_roots(const GraphIndex& index);

}  // namespace headroom
