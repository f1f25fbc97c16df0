// Small rewriting steps that the passes share: dead code, replacing uses, inserting nodes, renumbering.
// See ir/graph_index.h for the users of a value. None of these is safe against concurrent use of the same graph.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace headroom {

// Drops from the regions every node that has no effect and whose outputs no live node, region result or persistent
// update needs; loop bodies included, and loops carry only what is still needed (a dead carried value loses its input,
// param, result and output). Live by themselves: nodes with has_effect() (a loop: those in its body), results of
// programs, and nodes that update a persistent value in place (an output must-aliases storage that is rooted in a
// persistent value). Persistent values stay. Returns the number of nodes dropped; they remain in graph.nodes until
// compact(). Linear.
int remove_dead_nodes(Graph& graph);

// Makes every reader of `from` (node inputs and region results, nested ones too) read `to`. Linear in the graph: for
// many replacements use the form below.
void replace_uses(Graph& graph, ValueId from, ValueId to);

// The same for many values in one sweep: `replacement[v]` is kNone (v stays) or the value to read instead of v; chains
// are followed to their end. A cycle is a broken invariant. Shorter spans leave the values beyond them alone.
void replace_uses(Graph& graph, std::span<const ValueId> replacement);

// A new node with fresh outputs (types by the op's shape rule; roles follow must-aliased inputs, else `role`), listed
// in no region yet. kNone inputs are dropped.
NodeId make_node(Graph& graph, const Op& op, std::vector<ValueId> inputs, Attrs attrs, int32_t block, Stage stage,
                 Role role = Role::activation);

// The types of a node's outputs again, after those of its inputs or its attributes changed.
void infer_again(Graph& graph, NodeId id);

// A copy of a node that is not a loop: same op, inputs, attributes, block; fresh unnamed outputs of the same types and
// roles; listed in no region yet.
NodeId clone_node(Graph& graph, NodeId node, Stage stage);

// Lists `nodes` in the region just before what stands at `position` (0 = first; the region's size = at the end).
void insert_before(Graph& graph, RegionId region, int32_t position, std::span<const NodeId> nodes);

// A node to list before what stands at `position` of the unchanged region.
struct Insertion {
  int32_t position = 0;
  NodeId node = kNone;
};
// Many insertions in one linear sweep; those at one position keep their order in `insertions`.
void insert_all(Graph& graph, RegionId region, std::vector<Insertion> insertions);

// Old id -> new id, kNone where it was dropped.
struct Renumbering {
  std::vector<ValueId> values;
  std::vector<NodeId> nodes;
  std::vector<RegionId> regions;
};
// What compact() does with persistent values that no program reads: `keep` keeps the weights of a checkpoint together.
enum class UnusedPersistent : uint8_t { keep, drop };

// Drops the nodes, values and regions that no program reaches and renumbers the rest densely in their old order.
Renumbering compact(Graph& graph, UnusedPersistent unused = UnusedPersistent::keep);

}  // namespace headroom
