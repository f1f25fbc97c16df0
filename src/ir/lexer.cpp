#include "ir/lexer.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.h"

namespace headroom {
namespace {

constexpr size_t kShown = 40;  // bytes of a token in a message

// Printable and short, for messages.
std::string shown(std::string_view spelling) {
  std::string out;
  for (char c : spelling.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out.push_back(c);
  }
  if (spelling.size() > kShown) out += "...";
  return out;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void Lexer::fail(std::string_view expected) const {
  const bool end = token_.kind == TokenKind::end;
  const std::string found = end ? "the end of the text" : fmt::format("'{}'", shown(token_.spelling));
  fail_at(token_.spelling, fmt::format("found {}, expected {}", found, expected));
}

void Lexer::fail_at(std::string_view place, std::string_view message) const {
  const size_t offset = static_cast<size_t>(place.data() - text_.data());
  size_t line = 1;
  size_t line_start = 0;
  for (size_t i = 0; i < offset; ++i)
    if (text_[i] == '\n') {
      ++line;
      line_start = i + 1;
    }
  throw Error(ErrorKind::format, fmt::format("{}:{}:{}: {}", source_, line, offset - line_start + 1, message),
              "compare the line with docs/ir_format.md");
}

void Lexer::finish(TokenKind kind, size_t end) {
  token_.kind = kind;
  token_.spelling = text_.substr(at_, end - at_);
  at_ = end;
}

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
      ++at_;
    else if (text_.substr(at_, 2) == "//")
      at_ = std::min(text_.find('\n', at_), text_.size());
    else
      break;
  }
}

void Lexer::advance() {
  skip_blanks();
  if (at_ >= text_.size()) return finish(TokenKind::end, text_.size());
  const char c = text_[at_];
  if (identifier_start(c)) return lex_identifier();
  if (c == '-' || digit_at(at_)) return lex_number();
  if (c == '%') return lex_value();
  if (c == '"') return lex_string();
  finish(TokenKind::punctuation, at_ + (text_.substr(at_, 2) == "<=" ? 2 : 1));
}

void Lexer::lex_identifier() {
  size_t end = at_;
  while (end < text_.size() && identifier_part(text_[end])) ++end;
  finish(TokenKind::identifier, end);
}

void Lexer::lex_number() {
  size_t end = at_ + (text_[at_] == '-' ? 1 : 0);
  if (text_.substr(at_, 4) == "-inf") {
    finish(TokenKind::real, at_ + 4);
    token_.real = -std::numeric_limits<double>::infinity();
    return;
  }
  if (!digit_at(end)) fail_at(text_.substr(at_, 1), "found '-', expected a number after it");
  while (digit_at(end)) ++end;
  bool real = false;
  if (end < text_.size() && text_[end] == '.' && digit_at(end + 1)) {
    real = true;
    for (++end; digit_at(end);) ++end;
  }
  if (end < text_.size() && text_[end] == 'e') {
    size_t exponent = end + 1;
    if (exponent < text_.size() && (text_[exponent] == '-' || text_[exponent] == '+')) ++exponent;
    if (digit_at(exponent)) {
      real = true;
      for (end = exponent; digit_at(end);) ++end;
    }
  }
  if (real)
    lex_real(end);
  else
    lex_integer(end);
}

void Lexer::lex_integer(size_t end) {
  finish(TokenKind::integer, end);
  const auto [last, code] =
      std::from_chars(token_.spelling.data(), token_.spelling.data() + token_.spelling.size(), token_.integer);
  if (code != std::errc()) fail("an integer of 64 bits");
}

void Lexer::lex_real(size_t end) {
  finish(TokenKind::real, end);
  const auto [last, code] =
      std::from_chars(token_.spelling.data(), token_.spelling.data() + token_.spelling.size(), token_.real);
  if (code != std::errc()) fail("a real number within the range of f64");
}

void Lexer::lex_value() {
  size_t end = at_ + 1;
  while (digit_at(end)) ++end;
  finish(TokenKind::value, end);
  int32_t number = 0;
  const auto [last, code] =
      std::from_chars(token_.spelling.data() + 1, token_.spelling.data() + token_.spelling.size(), number);
  if (code != std::errc()) fail("a value id such as %12, at most %2147483647");
  token_.integer = number;
}

// Resolves the escape whose backslash is at `at`; leaves `at` at its last character.
char Lexer::lex_escape(size_t& at) const {
  const std::string_view escape = text_.substr(at, 4);
  const char c = escape.size() > 1 ? escape[1] : '\0';
  ++at;
  if (c == '"' || c == '\\') return c;
  if (c == 'n') return '\n';
  if (c == 't') return '\t';
  if (c == 'x' && escape.size() == 4 && hex_value(escape[2]) >= 0 && hex_value(escape[3]) >= 0) {
    at += 2;
    return static_cast<char>(hex_value(escape[2]) * 16 + hex_value(escape[3]));
  }
  fail_at(escape,
          fmt::format("found the escape '{}', expected \\\", \\\\, \\n, \\t or \\xHH", shown(escape.substr(0, 2))));
}

void Lexer::lex_string() {
  std::string out;
  size_t at = at_ + 1;
  for (; at < text_.size() && text_[at] != '"'; ++at) {
    if (text_[at] == '\n') break;
    out.push_back(text_[at] == '\\' ? lex_escape(at) : text_[at]);
  }
  if (at >= text_.size() || text_[at] != '"')
    fail_at(text_.substr(at_, 1), "found a string without its closing quote, expected it on the same line");
  finish(TokenKind::text, at + 1);
  token_.text = std::move(out);
}

}  // namespace headroom
