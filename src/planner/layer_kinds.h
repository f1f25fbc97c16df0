// Which layers of a model are equal.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace headroom {

// By layer (block) of a forward graph, its kind: layers of one kind have the same ops with the same work, those of the
// first layer's kind are 0. Models with more than two kinds, or more than 1023 layers, count as having one.
std::vector<uint8_t> layer_kinds(const Graph& forward);

}  // namespace headroom
