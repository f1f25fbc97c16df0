#include "jinja/literal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "jinja/problem.h"
#include "jinja/text.h"

namespace headroom::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The end of the digits from `at` on, which may have single underscores between them.
size_t digits_end(std::string_view text, size_t at) {
  if (at >= text.size() || !is_digit(text[at])) return at;
  while (at < text.size() &&
         (is_digit(text[at]) || (text[at] == '_' && at + 1 < text.size() && is_digit(text[at + 1]))))
    ++at;
  return at;
}

// The end of a fraction and exponent after the digits that end at `at`; `at` if there is neither.
size_t real_end(std::string_view text, size_t at) {
  if (at + 1 < text.size() && text[at] == '.' && is_digit(text[at + 1])) at = digits_end(text, at + 1);
  if (at >= text.size() || (text[at] != 'e' && text[at] != 'E')) return at;
  const size_t sign = at + 1 < text.size() && (text[at + 1] == '+' || text[at + 1] == '-') ? at + 2 : at + 1;
  const size_t end = digits_end(text, sign);
  return end > sign ? end : at;
}

char32_t code(std::string_view digits, int base, size_t length) {
  uint32_t value = 0;
  const std::string_view used = digits.substr(0, length);
  const auto parsed = std::from_chars(used.data(), used.data() + used.size(), value, base);
  if (used.size() < length || parsed.ec != std::errc() || parsed.ptr != used.data() + used.size())
    fail("a malformed escape in a text");
  if ((value >= 0xd800 && value < 0xe000) || value > 0x10ffff) refuse("an escape of half a surrogate pair");
  return value;
}

// Appends the characters of the escape at `at`, after the backslash, and returns its end.
size_t append_escape(std::string_view inside, size_t at, std::string& to) {
  constexpr std::string_view from = "\\'\"abfnrtv", into = "\\'\"\a\b\f\n\r\t\v";
  const char c = inside[at];
  if (const size_t i = from.find(c); i != from.npos) {
    to += into[i];
    return at + 1;
  }
  if (c == '\n') return at + 1;
  if (c == 'x' || c == 'u' || c == 'U') {
    const size_t length = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    append_point(to, code(inside.substr(at + 1), 16, length));
    return at + 1 + length;
  }
  if (c >= '0' && c <= '7') {
    size_t length = 1;
    while (length < 3 && at + length < inside.size() && inside[at + length] >= '0' && inside[at + length] <= '7')
      ++length;
    append_point(to, code(inside.substr(at), 8, length));
    return at + length;
  }
  if (c == 'N') refuse("the escape \\N");
  if (static_cast<unsigned char>(c) >= 0x80) refuse("a backslash before a character beyond ASCII");
  to += '\\';
  return at;
}

}  // namespace

std::string with_plain_line_ends(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    plain += text[i] == '\r' ? '\n' : text[i];
  }
  return plain;
}

std::string unescape(std::string_view inside) {
  std::string to;
  for (size_t at = 0; at < inside.size();) {
    if (inside[at] != '\\') {
      to += inside[at++];
      continue;
    }
    if (at + 1 == inside.size()) fail("a malformed escape in a text");
    at = append_escape(inside, at + 1, to);
  }
  return to;
}

NumberLiteral scan_number(std::string_view text, bool may_be_real) {
  NumberLiteral literal;
  const size_t whole = digits_end(text, 0);
  const size_t real = may_be_real ? real_end(text, whole) : whole;
  literal.bytes = real;
  std::string digits(text.substr(0, real));
  digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
  const char* end = digits.data() + digits.size();
  if (real > whole) {
    double value = 0;
    const auto parsed = std::from_chars(digits.data(), end, value);
    if (parsed.ec != std::errc()) literal.problem = fmt::format("the number {} is out of range", digits);
    literal.value = Value(value);
    return literal;
  }
  int64_t value = 0;
  const auto parsed = std::from_chars(digits.data(), end, value);
  if (parsed.ec != std::errc()) literal.problem = "an integer beyond 64 bits";
  const bool zeros = digits.size() > 1 && digits[0] == '0';
  if (zeros && value != 0) literal.problem = fmt::format("the malformed number {}", digits);
  literal.value = Value(value);
  return literal;
}

}  // namespace headroom::jinja
