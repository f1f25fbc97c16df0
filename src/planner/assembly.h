// A forward program between model passes and autodiff: what the passes of the model stage pass on.
#pragma once

#include <map>
#include <set>

#include "ir/graph.h"

namespace headroom {

struct Assembly {
  Graph graph;
  RegionId forward = kNone;             // of the program "forward"
  bool trains = true;                   // else its programs only evaluate
  std::set<ValueId> embeddings{};       // weights that are looked up
  std::set<ValueId> heads{};            // and that a loss multiplies by
  std::set<ValueId> frozen{};           // weights that are not trained
  std::map<ValueId, ValueId> copies{};  // of weights in a narrower dtype -> the weight
};

}  // namespace headroom
