// The concrete types of calls, for rules that look at every node of a graph.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace headroom {

// Holds the types of one call at a time, in memory that is used again from node to node. Not thread-safe.
class CallTypes {
 public:
  // The call that a node makes with these bindings, of a slice of rows where it works on one; valid until the next one.
  OpCall of(const Graph& graph, const Node& node, const Bindings& bindings);

 private:
  std::vector<ConcreteType> inputs_, outputs_;  // as many as the largest call so far has
};

}  // namespace headroom
