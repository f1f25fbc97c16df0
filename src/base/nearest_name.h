// The name that a user may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headroom {

// The number of one-character insertions, deletions and replacements that turn `a` into `b` (Levenshtein 1966).
size_t edit_distance(std::string_view a, std::string_view b);

// The entry of `names` with the least edit distance from `wrong`, the first of equals; empty if `names` is empty.
std::string nearest_name(std::string_view wrong, std::span<const std::string> names);

}  // namespace headroom
