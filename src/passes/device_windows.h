// How nodes reach values that lie in a tier below the device's, the host or the disk: windows on the device, filled and
// emptied by copies beside the kernels.
//
// What: a node that reads a value of the tier reads a copy of it instead; what it writes in place is copied back.
//     m' = update(m)      becomes      start m; w = wait; w' = update(w); start w' -> m; m' = wait
//   Nodes that follow each other with the same block and direction form a unit and share a window per value; an update
//   and a node outside blocks are units by themselves, but for nodes on parts of a sequence (sequence-chunks). Copies
//   for a unit start `depth` units ahead, and what it wrote is waited for `depth` units later; with depth 0 its copies
//   begin with the unit and end with it. No window is open across a loop. A node on a slice of rows (ir/row_slice.h)
//   has windows of these rows.
// Memory: of units of equal size u, 2 depth + 1 windows are open at most: the peak grows by 2 u with each step of
// depth.
#pragma once

#include <cstdint>
#include <functional>

#include "ir/graph.h"
#include "ir/row_slice.h"

namespace headroom {

// True for nodes that overwrite a value of a lower tier completely, so that nothing need be copied to the device.
using Overwrites = std::function<bool(const Node& node, ValueId value)>;

// Moves the storages of `roots` (by ValueId; values that no node makes in the storage of another) to a tier, with every
// value in them. Nodes that read them are invalid until open_windows() has run.
void move_to(Tier tier, Graph& graph, const std::vector<bool>& roots);

// A copy of a value to a tier, and the wait for it, whose result is the arrived value.
struct Copy {
  NodeId start = kNone;
  NodeId wait = kNone;
  ValueId arrived = kNone;
};
// Makes both nodes; the caller inserts them. With `over`, a value of that tier, the copy uses its storage. With
// `slice`, copies these rows of the source, or from a source that holds only them into those of `over`.
Copy make_copy(Graph& graph, ValueId source, Tier to, int32_t block, ValueId over = kNone,
               const std::optional<RowSlice>& slice = {});

// Opens windows for every node of the graph that reads or writes a value of a lower tier and is not a copy.
void open_windows(Graph& graph, int64_t depth, const Overwrites& overwrites = {});

// The units of a region: by position, the number of the node's unit; transfers belong to the unit of the node before
// them.
std::vector<int32_t> units_of(const Graph& graph, RegionId region);

// True for the starts and waits of copies and collectives.
bool is_transfer(const Node& node);

}  // namespace headroom
