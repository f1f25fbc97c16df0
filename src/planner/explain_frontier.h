// The plans to choose from, in `plan --explain`.
#pragma once

#include <string>

#include "planner/search.h"

namespace headroom {

// Appends a line per point of the frontier, the chosen one marked. Of neighbours within a thousandth of each other in
// every tier's bytes and in time only one is shown: the chosen one, or the first.
void explain_frontier(int64_t budget_bytes, const SearchResult& result, std::string& text);

}  // namespace headroom
