// Converts JSON of a data row to the values of a chat template.
#pragma once

#include "data/row.h"
#include "jinja/value.h"

namespace headroom {

// Parses `part` of a row, a JSON value. The value's bytes are counted in `budget`, and so are those of lists and texts
// while they grow. Throws Error(format) naming file and line for nesting deeper than 64 levels, integers beyond 64
// bits, and values that need more memory than the budget has.
jinja::Value chat_value(const Row& row, const RowPart& part, const RowPlace& place, jinja::Budget& budget);

}  // namespace headroom
