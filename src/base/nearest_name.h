// The name a user may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headroom {

// The entry of `names` at the least edit distance (Levenshtein 1966) from `wrong`; the earlier of equals; empty for no
// names.
std::string nearest_name(std::string_view wrong, std::span<const std::string> names);

}  // namespace headroom
