#include "data/json_scanner.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/error.h"

namespace headroom {
namespace {

constexpr int kMaxDepth = 64;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Writes a code point below 0x110000 as UTF-8.
char* encode_utf8(uint32_t point, char* to) {
  const auto put = [&to](uint32_t byte) { *to++ = static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | point >> 6);
    put(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  } else {
    put(0xf0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3f));
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  }
  return to;
}

}  // namespace

void JsonScanner::fail(std::string what) const { throw JsonProblem{position(), std::move(what)}; }

void JsonScanner::fail_here(std::string_view wanted) {
  if (at_ >= text_.size()) fail(fmt::format("ends where {} was expected", wanted));
  const auto c = static_cast<unsigned char>(text_[at_]);
  if (c < 0x20 || c >= 0x7f) fail(fmt::format("byte 0x{:02x} where {} was expected", c, wanted));
  fail(fmt::format("'{}' where {} was expected", static_cast<char>(c), wanted));
}

char JsonScanner::peek() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonScanner::accept(char wanted) {
  if (peek() != wanted || at_ == text_.size()) return false;
  ++at_;
  return true;
}

void JsonScanner::expect(char expected) {
  if (!accept(expected)) fail_here(fmt::format("'{}'", expected));
}

void JsonScanner::expect_end() {
  peek();
  if (at_ < text_.size()) fail_here("the end of the row");
}

uint32_t JsonScanner::hex4() {
  uint32_t value = 0;
  if (text_.size() - at_ < 4) fail("a \\u escape that is cut short");
  const char* begin = text_.data() + at_;
  const auto parsed = std::from_chars(begin, begin + 4, value, 16);
  if (parsed.ec != std::errc() || parsed.ptr != begin + 4) fail("a \\u escape without 4 hexadecimal digits");
  at_ += 4;
  return value;
}

// Consumes an escape after its backslash and writes what it stands for, never longer than itself.
char* JsonScanner::unescape(char* to) {
  if (at_ >= text_.size()) fail("a string that does not end");
  const char c = text_[at_++];
  constexpr std::string_view from = "\"\\/bfnrt", into = "\"\\/\b\f\n\r\t";
  if (const size_t i = from.find(c); i != std::string_view::npos) {
    *to++ = into[i];
    return to;
  }
  if (c != 'u') {
    --at_;
    fail_here("an escape (one of \"\\/bfnrtu)");
  }
  uint32_t point = hex4();
  if (point >= 0xdc00 && point <= 0xdfff) fail("a \\u escape of half a surrogate pair");
  if (point >= 0xd800 && point <= 0xdbff) {
    if (text_.size() - at_ < 2 || text_[at_] != '\\' || text_[at_ + 1] != 'u')
      fail("a \\u escape of half a surrogate pair");
    at_ += 2;
    const uint32_t low = hex4();
    if (low < 0xdc00 || low > 0xdfff) fail("a \\u escape of half a surrogate pair");
    point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
  }
  return encode_utf8(point, to);
}

// Length of the well-formed UTF-8 character of more than one byte at at_ (Unicode 15, table 3-7).
size_t JsonScanner::utf8_length() const {
  const auto byte = [this](size_t i) {
    return at_ + i < text_.size() ? static_cast<unsigned char>(text_[at_ + i]) : static_cast<unsigned char>(0);
  };
  const auto follows = [&byte](size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead >= 0xc2 && lead <= 0xdf && follows(1)) return 2;
  if (lead >= 0xe0 && lead <= 0xef && follows(1, lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf) && follows(2))
    return 3;
  if (lead >= 0xf0 && lead <= 0xf4 && follows(1, lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf) &&
      follows(2) && follows(3))
    return 4;
  fail(fmt::format("not UTF-8 (byte 0x{:02x})", lead));
}

std::string_view JsonScanner::string() {
  expect('"');
  char* const begin = text_.data() + at_;
  char* to = begin;
  while (true) {
    if (at_ >= text_.size()) fail("a string that does not end");
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') break;
    if (c == '\\') {
      ++at_;
      std::array<char, 4> unescaped;
      if (keeps_) {
        unescape(unescaped.data());
      } else {
        to = unescape(to);
      }
      continue;
    }
    if (c < 0x20) fail(fmt::format("the unescaped control character 0x{:02x} in a string", c));
    const size_t length = c < 0x80 ? 1 : utf8_length();
    if (!keeps_) std::memmove(to, text_.data() + at_, length);
    to += length;
    at_ += length;
  }
  ++at_;
  return {begin, static_cast<size_t>(to - begin)};
}

size_t JsonScanner::digits() {
  const size_t begin = at_;
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  if (at_ == begin) fail_here("a digit");
  return at_ - begin;
}

void JsonScanner::skip_number() {
  if (text_[at_] == '-') ++at_;
  const bool zero = at_ < text_.size() && text_[at_] == '0';
  if (digits() > 1 && zero) fail("a number with a leading zero");
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    digits();
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    digits();
  }
}

void JsonScanner::skip_literal(std::string_view literal) {
  if (std::string_view(text_.data() + at_, text_.size() - at_).substr(0, literal.size()) != literal)
    fail_here("a value");
  at_ += literal.size();
}

void JsonScanner::skip_scalar() {
  const char c = peek();
  if (c == '"') {
    string();
  } else if (c == '-' || is_digit(c)) {
    skip_number();
  } else {
    skip_literal(c == 't' ? "true" : c == 'f' ? "false" : "null");
  }
}

std::string_view JsonScanner::skip_value() { return value(); }

std::span<char> JsonScanner::keep_value() {
  peek();
  const size_t begin = at_;
  keeps_ = true;
  value();
  keeps_ = false;
  return text_.subspan(begin, at_ - begin);
}

std::string_view JsonScanner::value() {
  peek();
  const size_t begin = at_;
  std::array<char, kMaxDepth> closing;
  size_t depth = 0;
  do {
    const char open = peek();
    if (open == '{' || open == '[') {
      if (depth == closing.size()) fail(fmt::format("nested deeper than {} levels", kMaxDepth));
      ++at_;
      closing[depth++] = open == '{' ? '}' : ']';
    } else {
      skip_scalar();
    }
    bool opened = open == '{' || open == '[';
    while (depth > 0 && accept(closing[depth - 1])) {
      --depth;
      opened = false;
    }
    if (depth == 0) break;
    if (!opened) expect(',');
    if (closing[depth - 1] == '}') {
      string();
      expect(':');
    }
  } while (true);
  return {text_.data() + begin, at_ - begin};
}

int64_t JsonScanner::integer() {
  const char c = peek();
  if (c != '-' && !is_digit(c)) fail_here("an integer");
  const size_t begin = at_;
  skip_number();
  int64_t value = 0;
  const auto parsed = std::from_chars(text_.data() + begin, text_.data() + at_, value);
  if (parsed.ec == std::errc() && parsed.ptr == text_.data() + at_) return value;
  const std::string shown(text_.data() + begin, std::min<size_t>(at_ - begin, 40));
  at_ = begin;
  fail(fmt::format("{} where an integer was expected", shown));
}

}  // namespace headroom
