// Template text -> tokens, with Jinja's white space control: trim_blocks and lstrip_blocks are on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"

namespace headroom::jinja {

enum class TokenType { data, variable_begin, variable_end, block_begin, block_end, name, text, number, sign, end };

struct Token {
  TokenType type = TokenType::end;
  int line = 1;
  std::string text;  // data, a name, a sign, or a literal's content
  Value number;
};

// A Problem at a line of the template.
struct ProblemAt {
  int line;
  std::string text;
  bool unsupported = false;
};

// The last token is `end`. Throws ProblemAt.
std::vector<Token> tokenize(std::string_view source);

}  // namespace headroom::jinja
