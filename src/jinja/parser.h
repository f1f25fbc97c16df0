// Tokens -> statements and expressions.
#pragma once

#include <string_view>

#include "jinja/ast.h"

namespace headroom::jinja {

// Throws ProblemAt for what is not Jinja, and for tags, filters and tests outside the subset.
Body parse(std::string_view source);

}  // namespace headroom::jinja
