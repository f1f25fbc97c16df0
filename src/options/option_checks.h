// Refusals of an option's value, in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::option_checks {

// All throw Error(usage) naming the option (without its dashes), the value and the allowed values.
[[noreturn]] void refuse(std::string_view option, std::string_view value, std::string_view wanted);
void at_least(std::string_view option, int64_t value, int64_t least);  // and at most 2^40
void real_in(std::string_view option, double value, double least, double most);
void one_of(std::string_view option, const std::string& value, const std::vector<std::string_view>& words);

}  // namespace headroom::option_checks
