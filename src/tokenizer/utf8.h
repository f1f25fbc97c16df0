// UTF-8, decoded and checked.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headroom {

// A code point and its number of bytes.
struct Utf8Char {
  char32_t code;
  unsigned bytes;
};

// The character at `text[at]` of valid UTF-8 (at < text.size()).
inline Utf8Char decode_utf8(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

// The offset of the character that ends before `at` in valid UTF-8 (at > 0).
inline size_t previous_utf8(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

// Appends a code point (not a surrogate, at most U+10FFFF).
void append_utf8(char32_t code, std::string& out);

// How far a text is valid.
struct Utf8Check {
  size_t valid;     // bytes before the first character that is invalid or incomplete
  size_t broken;    // bytes of that sequence (its longest part that could begin a character); 0: none
  bool incomplete;  // the text ends within a character that is valid so far
};

// Checks from `from` on: no overlong forms, surrogates or code points above U+10FFFF.
Utf8Check check_utf8(std::string_view text, size_t from = 0);

// Throws Error(format) naming the byte offset (plus `base`) if `text` is not UTF-8.
void require_utf8(std::string_view text, size_t base = 0);

}  // namespace headroom
