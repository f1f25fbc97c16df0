// str.replace() and other pieces that methods and filters share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/text.h"
#include "jinja/value.h"

namespace headroom::jinja {

// most < 0: every occurrence.
std::string replace(Budget& budget, std::string_view text, std::string_view from, std::string_view to, int64_t most);
// Counts the steps of a search for `wanted` through the whole text.
void charge_search(Budget& budget, std::string_view text, std::string_view wanted, bool from_right = false);
// A list of texts, each held in the budget.
Value text_list(Budget& budget, ListKind kind, const std::vector<std::string_view>& parts);
// Holds the bytes of the views of a text that is split into `parts` pieces.
Charge room_for_parts(Budget& budget, uint64_t parts);
// The same for the lines of a text.
Charge room_for_lines(Budget& budget, std::string_view text);
// str.strip() with the optional characters of an argument.
std::string strip_argument(Budget& budget, std::string_view text, Side side, const Value* characters);

}  // namespace headroom::jinja
