// Splits a Python text into tokens. Nothing is executed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::doctor {

struct PythonToken {
  enum class Kind { name, number, string, symbol, line_end };
  Kind kind = Kind::line_end;  // line_end: the end of a logical line (outside brackets)
  std::string text;            // string: its value with escapes resolved; symbol: the operator or bracket
  bool interpolated = false;   // an f-string with braces: its value is known only at run time
  bool first = false;          // first of its logical line, at column 0
  int64_t line = 0;            // from 1
  int64_t begin = 0, end = 0;  // bytes in the text
};

// Handles strings of all kinds (prefixes, triple quotes), comments and joined lines; adjacent strings become one.
// Throws Error(format) with file and line for an unterminated string, and for a text above 8 MiB or a million tokens.
std::vector<PythonToken> tokenize_python(std::string_view text, const std::string& source);

}  // namespace headroom::doctor
