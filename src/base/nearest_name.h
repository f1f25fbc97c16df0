// The name a user may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headroom {

// Insertions, deletions and replacements of one character that turn `a` into `b` (Levenshtein 1966).
size_t edit_distance(std::string_view a, std::string_view b);

// The entry of `names` at the least edit distance from `wrong`; the earlier of equals; empty for no names.
std::string nearest_name(std::string_view wrong, std::span<const std::string> names);

}  // namespace headroom
