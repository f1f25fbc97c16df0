// A run of row-wise nodes (passes/row_runs.h) and what the rest of the graph reads of it.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "ir/graph.h"
#include "passes/row_runs.h"

namespace headroom {

// The readers of each value, kept up to date while runs are rewritten.
class Readers {
 public:
  explicit Readers(const Graph& graph);

  // Adds a new node; its outputs have no readers yet.
  void add(const Graph& graph, NodeId node);
  // Replaces input `at` of the node by another value.
  void replace(Graph& graph, NodeId node, size_t at, ValueId value);
  // Whether a node outside `nodes` reads the value, or a region yields it.
  bool outside(ValueId value, const std::set<NodeId>& nodes) const;
  // The node that makes a value; kNone if there is none.
  NodeId maker(ValueId value) const;

 private:
  struct Value {
    NodeId maker = kNone;
    std::vector<NodeId> readers;  // one for each operand; kNone: a region yields it
  };
  Value& of(ValueId value);

  std::vector<Value> values_;
};

// Const calls are safe from several threads while the graph is not rewritten.
class RowRun {
 public:
  RowRun(const Graph& graph, std::vector<NodeId> nodes, const Readers& readers);

  const std::vector<NodeId>& nodes() const { return nodes_; }
  // The results that nodes outside the run read, each with the input of the run whose storage it uses: an input of the
  // same type that no node reads after the run; within blocks, whose inputs may be fetched from another tier for the
  // backward pass, it also has the same role and direction. kNone if there is no such input.
  const std::map<ValueId, ValueId>& storages() const { return storages_; }

  // The most bytes per token that the run holds at once, counting the inputs that no node reads later and the values it
  // makes: in program order, and with its inner values in `parts` parts. Weights and sums are not counted.
  double bytes_whole() const;
  double bytes_in_parts(int64_t parts) const;

 private:
  struct Life {
    bool ends = false;  // no reader after the run
    size_t last = 0;    // position of the last reader in the run
  };
  void find_storages(const Readers& readers);
  int64_t most_alive(bool in_parts) const;

  const Graph& graph_;
  TokenRows rows_;
  std::vector<NodeId> nodes_;
  std::vector<ValueId> inputs_;    // with rows, from outside, in the order of their first reader
  std::map<ValueId, Life> lives_;  // of all values with rows
  std::map<ValueId, ValueId> storages_;
};

}  // namespace headroom
