// Jinja's tests: `value is defined`.
#pragma once

#include <string_view>

#include "jinja/arguments.h"

namespace headroom::jinja {

bool is_test(std::string_view name);
// Throws Problem(unsupported) for a name that is not a test of the subset.
bool run_test(Budget& budget, std::string_view name, const Value& value, const Arguments& arguments);

}  // namespace headroom::jinja
