#include "data/json_scanner.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/error.h"

namespace headroom {
namespace {

constexpr int kMaxDepth = 64;
constexpr int64_t kNumberBytes = 400;
constexpr int kEnd = -1;

bool is_space(int c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_digit(int c) { return c >= '0' && c <= '9'; }

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
  const int c = byte();
  if (c == kEnd) fail(fmt::format("ends where {} was expected", wanted));
  if (c < 0x20 || c >= 0x7f) fail(fmt::format("byte 0x{:02x} where {} was expected", c, wanted));
  fail(fmt::format("'{}' where {} was expected", static_cast<char>(c), wanted));
}

// The byte at at_ + `ahead` (less than RowBytes::kMostAtOnce), or kEnd.
int JsonScanner::byte(int64_t ahead) {
  const int64_t at = at_ + ahead - window_at_;
  if (at >= 0 && at < static_cast<int64_t>(window_.size()))
    return static_cast<unsigned char>(window_[static_cast<size_t>(at)]);
  return far_byte(at_ + ahead);
}

int JsonScanner::far_byte(int64_t at) {
  if (at >= end_) return kEnd;
  window_ = text_.from(at_, at + 1 - at_).substr(0, static_cast<size_t>(end_ - at_));
  window_at_ = at_;
  return static_cast<unsigned char>(window_[static_cast<size_t>(at - at_)]);
}

char JsonScanner::peek() {
  while (is_space(byte())) ++at_;
  const int c = byte();
  return c == kEnd ? '\0' : static_cast<char>(c);
}

bool JsonScanner::accept(char wanted) {
  if (peek() != wanted || byte() == kEnd) return false;
  ++at_;
  return true;
}

void JsonScanner::expect(char expected) {
  if (!accept(expected)) fail_here(fmt::format("'{}'", expected));
}

void JsonScanner::expect_end() {
  peek();
  if (byte() != kEnd) fail_here("the end of the row");
}

uint32_t JsonScanner::hex4() {
  std::array<char, 4> text;
  for (int i = 0; i < 4; ++i) {
    const int c = byte(i);
    if (c == kEnd) fail("a \\u escape that is cut short");
    text[static_cast<size_t>(i)] = static_cast<char>(c);
  }
  uint32_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
    fail("a \\u escape without 4 hexadecimal digits");
  at_ += 4;
  return value;
}

// Consumes an escape after its backslash and writes the escaped character.
char* JsonScanner::unescape(char* to) {
  const int c = byte();
  if (c == kEnd) fail("a string that does not end");
  constexpr std::string_view from = "\"\\/bfnrt", into = "\"\\/\b\f\n\r\t";
  if (const size_t i = from.find(static_cast<char>(c)); i != std::string_view::npos) {
    ++at_;
    *to++ = into[i];
    return to;
  }
  if (c != 'u') fail_here("an escape (one of \"\\/bfnrtu)");
  ++at_;
  uint32_t point = hex4();
  if (point >= 0xdc00 && point <= 0xdfff) fail("a \\u escape of half a surrogate pair");
  if (point >= 0xd800 && point <= 0xdbff) {
    if (byte() != '\\' || byte(1) != 'u') fail("a \\u escape of half a surrogate pair");
    at_ += 2;
    const uint32_t low = hex4();
    if (low < 0xdc00 || low > 0xdfff) fail("a \\u escape of half a surrogate pair");
    point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
  }
  return encode_utf8(point, to);
}

// Length of the well-formed UTF-8 character of more than one byte at at_ (Unicode 15, table 3-7).
int64_t JsonScanner::utf8_length() {
  const auto follows = [this](int64_t i, int low = 0x80, int high = 0xbf) { return byte(i) >= low && byte(i) <= high; };
  const int lead = byte();
  if (lead >= 0xc2 && lead <= 0xdf && follows(1)) return 2;
  if (lead >= 0xe0 && lead <= 0xef && follows(1, lead == 0xe0 ? 0xa0 : 0x80, lead == 0xed ? 0x9f : 0xbf) && follows(2))
    return 3;
  if (lead >= 0xf0 && lead <= 0xf4 && follows(1, lead == 0xf0 ? 0x90 : 0x80, lead == 0xf4 ? 0x8f : 0xbf) &&
      follows(2) && follows(3))
    return 4;
  fail(fmt::format("not UTF-8 (byte 0x{:02x})", lead));
}

// Copies unescaped ASCII characters, as far as the window has them.
size_t JsonScanner::plain_bytes(std::span<char> into) {
  const int64_t skipped = at_ - window_at_;
  if (skipped < 0 || skipped >= static_cast<int64_t>(window_.size())) return 0;
  const std::string_view rest = window_.substr(static_cast<size_t>(skipped), into.size());
  size_t count = 0;
  for (; count < rest.size(); ++count) {
    const auto c = static_cast<unsigned char>(rest[count]);
    if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') break;
  }
  std::memcpy(into.data(), rest.data(), count);
  at_ += static_cast<int64_t>(count);
  return count;
}

size_t JsonScanner::read_string(std::span<char> into) {
  HR_CHECK(into.size() >= 4, "{} bytes for a character", into.size());
  char* to = into.data();
  char* const full = into.data() + into.size() - 3;
  while (to < full) {
    to += plain_bytes({to, into.data() + into.size()});
    if (to >= full) break;
    const int c = byte();
    if (c == kEnd) fail("a string that does not end");
    if (c == '"') {
      if (to == into.data()) ++at_;
      break;
    }
    if (c == '\\') {
      ++at_;
      to = unescape(to);
      continue;
    }
    if (c < 0x20) fail(fmt::format("the unescaped control character 0x{:02x} in a string", c));
    const int64_t length = c < 0x80 ? 1 : utf8_length();
    for (int64_t i = 0; i < length; ++i) *to++ = static_cast<char>(byte(i));
    at_ += length;
  }
  return static_cast<size_t>(to - into.data());
}

std::string JsonScanner::string(size_t most) {
  std::array<char, 512> piece;
  std::string text;
  bool whole = true;  // nothing was left out yet
  open_string();
  while (const size_t count = read_string(piece)) {
    std::string_view rest(piece.data(), whole ? count : 0);
    if (rest.size() > most - text.size()) {
      size_t fits = most - text.size();
      while (fits > 0 && (static_cast<unsigned char>(rest[fits]) & 0xc0) == 0x80) --fits;
      rest = rest.substr(0, fits);
      whole = false;
    }
    text += rest;
  }
  return text;
}

void JsonScanner::skip_string() {
  std::array<char, 512> piece;
  open_string();
  while (read_string(piece) > 0) {
  }
}

size_t JsonScanner::digits() {
  const int64_t begin = at_;
  while (is_digit(byte())) ++at_;
  if (at_ == begin) fail_here("a digit");
  return static_cast<size_t>(at_ - begin);
}

void JsonScanner::skip_number() {
  if (byte() == '-') ++at_;
  const bool zero = byte() == '0';
  if (digits() > 1 && zero) fail("a number with a leading zero");
  if (byte() == '.') {
    ++at_;
    digits();
  }
  if (byte() == 'e' || byte() == 'E') {
    ++at_;
    if (byte() == '+' || byte() == '-') ++at_;
    digits();
  }
}

void JsonScanner::skip_literal(std::string_view literal) {
  for (size_t i = 0; i < literal.size(); ++i)
    if (byte(static_cast<int64_t>(i)) != literal[i]) fail_here("a value");
  at_ += static_cast<int64_t>(literal.size());
}

void JsonScanner::skip_scalar() {
  const char c = peek();
  if (c == '"') {
    skip_string();
  } else if (c == '-' || is_digit(c)) {
    skip_number();
  } else {
    skip_literal(c == 't' ? "true" : c == 'f' ? "false" : "null");
  }
}

void JsonScanner::skip_value() {
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
      peek();
      skip_string();
      expect(':');
    }
  } while (true);
}

// The text between `begin` and at_, at most `most` bytes of it.
std::string JsonScanner::text_from(int64_t begin, int64_t most) {
  std::string text;
  for (int64_t at = begin; at < std::min(at_, begin + most);) {
    const std::string_view piece = text_.from(at).substr(0, static_cast<size_t>(std::min(at_, begin + most) - at));
    text += piece;
    at += static_cast<int64_t>(piece.size());
  }
  window_ = {};  // it may no longer be valid
  return text;
}

std::string JsonScanner::number() {
  peek();
  const int64_t begin = at_;
  skip_number();
  if (at_ - begin > kNumberBytes) fail(fmt::format("a number of more than {} characters", kNumberBytes));
  return text_from(begin, kNumberBytes);
}

int64_t JsonScanner::integer() {
  const char c = peek();
  if (c != '-' && !is_digit(c)) fail_here("an integer");
  const int64_t begin = at_;
  std::array<char, 24> text;
  size_t length = 0;
  if (c == '-') {
    text[length++] = '-';
    ++at_;
  }
  for (; is_digit(byte()) && length < text.size(); ++at_) text[length++] = static_cast<char>(byte());
  at_ = begin;
  skip_number();
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + length, value);
  if (parsed.ec == std::errc() && at_ - begin == static_cast<int64_t>(length)) return value;
  const std::string shown = text_from(begin, 40);
  at_ = begin;
  fail(fmt::format("{} where an integer was expected", shown));
}

}  // namespace headroom
