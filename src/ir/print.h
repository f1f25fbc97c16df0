// The text form of a graph, as docs/ir_format.md describes it.
#pragma once

#include <string>

#include "ir/graph.h"

namespace headroom {

// The whole graph. Values are numbered densely: persistent ones first, then in print order, so that
// print(parse_graph(print(g))) == print(g) byte for byte. Nodes, regions and values that no program reaches are left
// out, except persistent values. Every id must be in range (see verify.h). Linear.
std::string print(const Graph& graph);

// One node on one line with the graph's own value ids, for messages. Bodies of loops are printed as `{...}`. Safe for
// broken graphs: ids out of range are printed as numbers.
std::string print_node(const Graph& graph, NodeId node);

// A type such as `f32[batch, 64]@host`.
std::string print_type(const Graph& graph, const Type& type);

}  // namespace headroom
