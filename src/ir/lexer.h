// Splits the text form of a graph into tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

constexpr bool identifier_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool identifier_part(char c) { return identifier_start(c) || (c >= '0' && c <= '9') || c == '.'; }

enum class TokenKind : uint8_t { end, identifier, integer, real, text, value, punctuation };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view spelling;  // as written
  int64_t integer = 0;        // of an integer; of a value, the number of its id
  double real = 0;
  std::string text;  // of a quoted string, escapes resolved
};

// Tokens one by one; spaces, line ends and comments (`//` to the end of the line) separate them. Errors are
// Error(format) with source:line:column. The text must outlive the lexer.
class Lexer {
 public:
  Lexer(std::string_view text, const std::string& source) : text_(text), source_(source) { advance(); }

  const Token& token() const { return token_; }
  // Moves to the next token, or stays at the end of the text.
  void advance();

  // "source:line:column: found <current token>, expected <expected>".
  [[noreturn]] void fail(std::string_view expected) const;
  // "source:line:column: <message>" at `place` (the spelling of an earlier token) or at the current token.
  [[noreturn]] void fail_at(std::string_view place, std::string_view message) const;

 private:
  void skip_blanks();
  void lex_identifier();
  void lex_number();
  void lex_integer(size_t end);
  void lex_real(size_t end);
  void lex_value();
  void lex_string();
  char lex_escape(size_t& at) const;
  void finish(TokenKind kind, size_t end);
  bool digit_at(size_t at) const { return at < text_.size() && text_[at] >= '0' && text_[at] <= '9'; }

  std::string_view text_;
  const std::string& source_;
  size_t at_ = 0;
  Token token_;
};

}  // namespace headroom
