// Reads the text form of a graph (docs/ir_format.md).
#pragma once

#include <string>
#include <string_view>

#include "ir/builder.h"
#include "ir/graph.h"

namespace headroom {

// The graph that `text` describes. `source` names the text in messages (a file name). Ids of values are free in the
// text; the graph numbers them in order of appearance. Types are taken as written: verify() compares them with the
// shape rules. Throws Error(format) with source:line:column, what was found and what was expected; an op that `ops`
// does not know (InternalError) is such an error too. Safe for hostile text: nesting, sizes and lengths are bounded.
Graph parse_graph(std::string_view text, const std::string& source, const OpLookup& ops);

}  // namespace headroom
