// The parser's view of the tokens.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/lexer.h"

namespace headroom::jinja {

// Every member that fails throws ProblemAt at the current token.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is(TokenType type) const { return now().type == type; }
  bool is_sign(std::string_view sign) const { return is(TokenType::sign) && now().text == sign; }
  bool is_name(std::string_view name) const { return is(TokenType::name) && now().text == name; }
  Token take();
  bool skip_sign(std::string_view sign);
  bool skip_name(std::string_view name);
  Token expect(TokenType type, std::string_view what);
  void expect_sign(std::string_view sign);
  void expect_name(std::string_view name);

  [[noreturn]] void fail_here(std::string what) const;
  // Says which token came where `what` was expected.
  [[noreturn]] void fail_expecting(std::string_view what) const;
  [[noreturn]] void refuse_here(std::string_view name) const;

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace headroom::jinja
