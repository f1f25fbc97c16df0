#include "options/option_checks.h"

#include <algorithm>

#include "base/error.h"

namespace headroom::option_checks {

void refuse(std::string_view option, std::string_view value, std::string_view wanted) {
  throw Error(ErrorKind::usage, fmt::format("--{} {} is out of range", option, value), fmt::format("give {}", wanted));
}

void at_least(std::string_view option, int64_t value, int64_t least) {
  if (value < least || value > (int64_t{1} << 40))
    refuse(option, std::to_string(value), fmt::format("a whole number of at least {}", least));
}

void real_in(std::string_view option, double value, double least, double most) {
  if (!(value >= least && value <= most))
    refuse(option, fmt::format("{}", value), fmt::format("a number from {} to {}", least, most));
}

void one_of(std::string_view option, const std::string& value, const std::vector<std::string_view>& words) {
  if (std::find(words.begin(), words.end(), value) == words.end())
    throw Error(ErrorKind::usage, fmt::format("--{} '{}' is not known", option, value),
                fmt::format("one of {}", fmt::join(words, ", ")));
}

}  // namespace headroom::option_checks
