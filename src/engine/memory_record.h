// A plan's memory over a run, for `report` and `watch`.
#pragma once

#include <string>

#include "planner/search.h"

namespace headroom {

// memory.json of a plan that fits: the training step's memory and the frontier, at most 64 of its points.
std::string memory_record(const SearchResult& found);

}  // namespace headroom
