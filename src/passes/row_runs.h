// Runs of nodes that act on token rows one by one (Op::by_rows), brought together so that each run may be computed for
// a part of the rows after the other.
#pragma once

#include <utility>
#include <vector>

#include "ir/graph.h"

namespace headroom {

// What has token rows: tensors [batch, seq, ...] of the graph's symbols of those names.
class TokenRows {
 public:
  explicit TokenRows(const Graph& graph)
      : graph_(graph), batch_(graph.find_symbol("batch")), seq_(graph.find_symbol("seq")) {}

  SymbolId seq() const { return seq_; }
  bool has(ValueId id) const;
  // Bytes of one row of a value that has rows.
  int64_t bytes(ValueId id) const;
  // A loss whose row predicts the label of the row behind it.
  static bool reads_next_labels(const Node& node);
  // The node reads rows, acts on them one by one, and gives rows or sums over them.
  bool acts_on(const Node& node) const;

 private:
  const Graph& graph_;
  SymbolId batch_, seq_;
};

// The nodes of a region in an order as good as theirs, and the runs in it: [begin, end) of `nodes`, ascending. The
// nodes of a run have one block and one direction (forward, or backward with what is computed again for it); outside of
// blocks a run goes from the one to the other, through the loss. Nodes between them in the region's order that need
// nothing of the run stand before it, the others behind it; a node of the run that needs one of those ends the run.
struct RowOrder {
  std::vector<NodeId> nodes;
  std::vector<std::pair<size_t, size_t>> runs;
};
RowOrder gather_rows(const Graph& graph, RegionId region);

}  // namespace headroom
