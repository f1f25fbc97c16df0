// One run of row-wise nodes (passes/row_runs.h) and what the rest of the graph reads of it.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "ir/graph.h"
#include "passes/row_runs.h"

namespace headroom {

// Who reads each value, kept up to date while runs are rewritten.
class Readers {
 public:
  explicit Readers(const Graph& graph);

  // A new node; its outputs have no reader yet.
  void add(const Graph& graph, NodeId node);
  // Makes input `at` of the node another value.
  void replace(Graph& graph, NodeId node, size_t at, ValueId value);
  // Someone who is not among the nodes reads the value, or a region yields it.
  bool outside(ValueId value, const std::set<NodeId>& nodes) const;
  // The node that makes a value; kNone for those without.
  NodeId maker(ValueId value) const;

 private:
  std::map<ValueId, std::multiset<NodeId>> of_;  // kNone: a region yields it
  std::map<ValueId, NodeId> makers_;
};

// Const calls are safe from several threads while the graph is not rewritten.
class RowRun {
 public:
  RowRun(const Graph& graph, std::vector<NodeId> nodes, const Readers& readers);

  const std::vector<NodeId>& nodes() const { return nodes_; }
  // The results that others read, each with the input of the run whose storage it takes: one of the same type that
  // nobody reads after the run; in blocks, whose inputs may be fetched from another tier for the backward pass, one of
  // the same role and direction. kNone where there is none.
  const std::map<ValueId, ValueId>& storages() const { return storages_; }

  // Bytes per token that the run holds at most, of what it reads last and what it makes: in program order, and with its
  // inside in so many parts. Weights and sums are not counted.
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
