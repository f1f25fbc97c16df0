// Runs of nodes that act on token rows one by one (Op::by_rows), brought together so that each run can be computed for
// one part of the rows after another.
#pragma once

#include <utility>
#include <vector>

#include "ir/graph.h"

namespace headroom {

// The values with token rows: tensors [batch, seq, ...] of the graph's symbols of those names.
class TokenRows {
 public:
  explicit TokenRows(const Graph& graph)
      : graph_(graph), batch_(graph.find_symbol("batch")), seq_(graph.find_symbol("seq")) {}

  SymbolId seq() const { return seq_; }
  bool has(ValueId id) const;
  // Bytes of one row of a value that has rows.
  int64_t bytes(ValueId id) const;
  // A loss whose row predicts the label of the next row.
  static bool reads_next_labels(const Node& node);
  // Whether the node reads rows, acts on them one by one, and returns rows or sums over them.
  bool acts_on(const Node& node) const;

 private:
  const Graph& graph_;
  SymbolId batch_, seq_;
};

// The nodes of a region in an equivalent order, and the runs in it: [begin, end) of `nodes`, ascending. The nodes of a
// run have the same block and the same direction (forward, or backward with its recomputation); outside blocks a run
// may continue from forward to backward, through the loss. Other nodes between them in the region's order come before
// the run if they need nothing of it, otherwise after it; a node that needs one of the latter cannot join, and ends the
// run.
struct RowOrder {
  std::vector<NodeId> nodes;
  std::vector<std::pair<size_t, size_t>> runs;
};
RowOrder gather_rows(const Graph& graph, RegionId region);

}  // namespace headroom
