// Reads the text form of a graph (docs/ir_format.md).
#pragma once

#include <string>
#include <string_view>

#include "ir/builder.h"
#include "ir/graph.h"

namespace headroom {

// The graph that `text` describes. `source` names the text in messages (a file name). Value ids in the text are
// arbitrary; the graph numbers values in order of appearance. Types are taken as written: verify() compares them with
// the shape rules. Throws Error(format) with source:line:column, what was found and what was expected, also for an op
// that `ops` does not know (InternalError). Safe for hostile text: nesting, sizes and lengths are bounded.
Graph parse_graph(std::string_view text, const std::string& source, const OpLookup& ops);

}  // namespace headroom
