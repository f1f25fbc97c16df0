// A strict JSON reader over one buffer, without any memory of its own: strings are unescaped in place, everything else
// is skipped or handed out as text. For data rows, which may be many megabytes long.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headroom {

// What is wrong and at which byte of the buffer.
struct JsonProblem {
  int64_t position = 0;
  std::string what;
};

// Used from left to right. Every member throws JsonProblem when the text is no JSON (RFC 8259) or no UTF-8.
class JsonScanner {
 public:
  explicit JsonScanner(std::span<char> text) : text_(text) {}

  // The next byte that is no white space, not consumed; '\0' at the end.
  char peek();
  // Consumes `expected`, after white space.
  void expect(char expected);
  // Consumes `wanted` if it comes next, after white space.
  bool accept(char wanted);
  // Consumes a string and unescapes it in place; the view stays valid as long as the buffer.
  std::string_view string();
  // Consumes any value and returns its text (strings in it unescaped: fit for showing and for lists of numbers).
  std::string_view skip_value();
  // Consumes any value and returns its text as it is: fit for another scanner.
  std::span<char> keep_value();
  // Consumes an integer without fraction or exponent that fits 63 bits.
  int64_t integer();
  // Nothing but white space is left.
  void expect_end();

  int64_t position() const { return static_cast<int64_t>(at_); }

 private:
  [[noreturn]] void fail(std::string what) const;
  [[noreturn]] void fail_here(std::string_view wanted);
  void skip_scalar();
  void skip_number();
  void skip_literal(std::string_view literal);
  size_t digits();
  uint32_t hex4();
  char* unescape(char* to);
  size_t utf8_length() const;
  std::string_view value();

  std::span<char> text_;
  size_t at_ = 0;
  bool keeps_ = false;  // strings are checked, not unescaped
};

}  // namespace headroom
