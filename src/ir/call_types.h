// The concrete types of calls, for rules that look at every node of a graph.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace headroom {

// Holds the types of one call at a time and reuses the memory from node to node. Not thread-safe.
class CallTypes {
 public:
  // The call that a node makes with these bindings, on its slice of rows if it has one; valid until the next call of
  // of().
  OpCall of(const Graph& graph, const Node& node, const Bindings& bindings);

 private:
  std::vector<ConcreteType> inputs_, outputs_;  // sized for the largest call so far
};

}  // namespace headroom
