// Compares the numbers in advice with those in the post, so that advice to lower a setting names less than it has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::doctor {

// `set` with the number of each setting that it should lower replaced by half the post's value, if `post` (in lower
// case) has that number or less; a setting that cannot be halved gets the post's value. Empty if the advice's first
// setting cannot be halved: then the advice is useless.
std::string below_posted(const std::string& set, std::string_view post);

// The least value that the post gives any of these settings; names are separated by '|'.
std::optional<int64_t> posted_value(std::string_view post, std::string_view names);

}  // namespace headroom::doctor
