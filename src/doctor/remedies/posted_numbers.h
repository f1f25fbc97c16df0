// The numbers of an advice, compared with those that the post sets: advice that lowers a setting names less than it
// has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::doctor {

// `set` with each number of a setting that is to be lowered, where `post` (in lower case) has as much or less, replaced
// by half of what the post has. Empty where a setting has its least value already, so that the advice says nothing.
std::string below_posted(const std::string& set, std::string_view post);

// The least number that the post gives one of the settings, whose names are separated by '|'.
std::optional<int64_t> posted_value(std::string_view post, std::string_view names);

}  // namespace headroom::doctor
