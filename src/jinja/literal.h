// The literals of templates: Python's texts and numbers.
#pragma once

#include <string>
#include <string_view>

#include "jinja/value.h"

namespace headroom::jinja {

// \r\n and \r become \n.
std::string with_plain_line_ends(std::string_view text);
// The text of a literal with this between its quotes. Throws Problem for malformed escapes and lone surrogates.
std::string unescape(std::string_view inside);

struct NumberLiteral {
  size_t bytes = 0;
  Value value;
  std::string problem;  // empty: none
};
// The number at the beginning of `text`, which begins with a digit.
NumberLiteral scan_number(std::string_view text, bool may_be_real);

}  // namespace headroom::jinja
