// The literals of templates: Python's texts and numbers.
#pragma once

#include <string>
#include <string_view>

#include "jinja/value.h"

namespace headroom::jinja {

// \r\n and \r become \n.
std::string with_plain_line_ends(std::string_view text);
// What a text literal's inside stands for. Throws Problem for malformed escapes and half surrogates.
std::string unescape(std::string_view inside);

struct NumberLiteral {
  size_t bytes = 0;
  Value value;
  std::string problem;  // empty: none
};
// The number that `text`, which begins with a digit, begins with.
NumberLiteral scan_number(std::string_view text, bool may_be_real);

}  // namespace headroom::jinja
