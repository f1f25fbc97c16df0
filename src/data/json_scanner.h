// A strict JSON reader over the bytes of a row that allocates nothing: strings are returned piece by piece, everything
// else is skipped. For data rows, which may have many megabytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/row_bytes.h"

namespace headroom {

// The error and its offset in the row.
struct JsonProblem {
  int64_t position = 0;
  std::string what;
};

// Used from left to right. Every member throws JsonProblem when the text is not JSON (RFC 8259) or not UTF-8. `text`
// outlives it, and only one scanner reads it at a time.
class JsonScanner {
 public:
  explicit JsonScanner(const RowBytes& text) : JsonScanner(text, 0, text.size()) {}
  // Reads the bytes from `begin` up to `end`; positions are still those in the whole row.
  JsonScanner(const RowBytes& text, int64_t begin, int64_t end) : text_(text), at_(begin), end_(end) {}

  // The next byte that is not white space, not consumed; '\0' at the end.
  char peek();
  // Consumes `expected`, after white space.
  void expect(char expected);
  // Consumes `wanted` if it comes next, after white space.
  bool accept(char wanted);
  // Consumes the quote that begins a string.
  void open_string() { expect('"'); }
  // Inside an opened string: writes the next unescaped bytes into `into` (at least 4 bytes), whole characters, and
  // returns how many. At the end of the string it consumes the quote and returns 0.
  size_t read_string(std::span<char> into);
  // Consumes a string and returns its beginning, unescaped: whole characters of at most `most` bytes.
  std::string string(size_t most);
  // Consumes any value.
  void skip_value();
  // Consumes a number of at most 400 characters and returns its text.
  std::string number();
  // Consumes an integer without fraction or exponent that fits 63 bits.
  int64_t integer();
  // Checks that only white space is left.
  void expect_end();

  int64_t position() const { return at_; }

 private:
  [[noreturn]] void fail(std::string what) const;
  [[noreturn]] void fail_here(std::string_view wanted);
  int byte(int64_t ahead = 0);
  int far_byte(int64_t at);
  void skip_scalar();
  void skip_string();
  void skip_number();
  void skip_literal(std::string_view literal);
  size_t digits();
  uint32_t hex4();
  char* unescape(char* to);
  size_t plain_bytes(std::span<char> into);
  int64_t utf8_length();
  std::string text_from(int64_t begin, int64_t most);

  const RowBytes& text_;
  int64_t at_;
  int64_t end_;
  std::string_view window_;  // of the text
  int64_t window_at_ = 0;
};

}  // namespace headroom
