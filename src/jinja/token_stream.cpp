#include "jinja/token_stream.h"

#include <fmt/format.h>

namespace headroom::jinja {

Token TokenStream::take() {
  Token token = std::move(tokens_[at_]);
  if (token.type == TokenType::end) {
    tokens_[at_] = token;  // stays the last
  } else {
    tokens_[at_].type = token.type;
    tokens_[at_].line = token.line;
    ++at_;
  }
  return token;
}

bool TokenStream::skip_sign(std::string_view sign) {
  if (!is_sign(sign)) return false;
  take();
  return true;
}

bool TokenStream::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  take();
  return true;
}

Token TokenStream::expect(TokenType type, std::string_view what) {
  if (!is(type)) fail_expecting(what);
  return take();
}

void TokenStream::expect_sign(std::string_view sign) {
  if (!skip_sign(sign)) fail_expecting(fmt::format("'{}'", sign));
}

void TokenStream::expect_name(std::string_view name) {
  if (!skip_name(name)) fail_expecting(fmt::format("'{}'", name));
}

void TokenStream::fail_here(std::string what) const { throw ProblemAt{now().line, std::move(what)}; }

void TokenStream::fail_expecting(std::string_view what) const {
  switch (now().type) {
    case TokenType::end:
      fail_here(fmt::format("the template ends where {} was expected", what));
    case TokenType::variable_end:
    case TokenType::block_end:
      fail_here(fmt::format("the tag ends where {} was expected", what));
    default:
      fail_here(fmt::format("'{}' where {} was expected", now().text.substr(0, 40), what));
  }
}

void TokenStream::refuse_here(std::string_view name) const {
  throw ProblemAt{now().line, fmt::format("'{}' is not supported", name), true};
}

}  // namespace headroom::jinja
