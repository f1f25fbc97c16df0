// JSON of a data row -> the values that a chat template computes with.
#pragma once

#include <span>

#include "data/row.h"
#include "jinja/value.h"

namespace headroom {

// Parses `json`, a value in a row's buffer at byte `at`, in place. The value's bytes are held in `budget`. Throws
// Error(format) naming file and line for what nests deeper than 64 levels, integers beyond 64 bits, and values that
// need more memory than the budget gives.
jinja::Value chat_value(std::span<char> json, int64_t at, const RowPlace& place, jinja::Budget& budget);

}  // namespace headroom
