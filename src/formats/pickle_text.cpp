#include "formats/pickle_text.h"

#include <charconv>

namespace headroom {
namespace {

void append_utf8(std::string& out, uint32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    tail(12), tail(6), tail(0);
  }
}

std::optional<uint32_t> digits(std::string_view text, size_t at, size_t count, int base) {
  if (text.size() - at < count) return std::nullopt;
  uint32_t value = 0;
  const char* end = text.data() + at + count;
  const auto [stop, status] = std::from_chars(text.data() + at, end, value, base);
  if (status != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Decodes the escape after the backslash at text[at - 1]; moves `at` past it.
void append_escape(std::string_view text, size_t& at, std::string& out) {
  static constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
  const char letter = text[at];
  if (const size_t known = kLetters.find(letter); known != std::string_view::npos) {
    out += kMeanings[known];
    ++at;
  } else if (const auto byte = letter == 'x' ? digits(text, at + 1, 2, 16) : std::nullopt) {
    out += static_cast<char>(*byte);
    at += 3;
  } else if (letter >= '0' && letter <= '7') {
    uint32_t value = 0;
    for (int i = 0; i < 3 && at < text.size() && text[at] >= '0' && text[at] <= '7'; ++i)
      value = value * 8 + static_cast<uint32_t>(text[at++] - '0');
    out += static_cast<char>(value & 0xff);
  } else {
    out += '\\';
  }
}

}  // namespace

std::optional<std::string> decode_quoted(std::string_view literal) {
  while (!literal.empty() && (literal.back() == ' ' || literal.back() == '\r')) literal.remove_suffix(1);
  if (literal.size() < 2 || literal.front() != literal.back() || (literal.front() != '\'' && literal.front() != '"'))
    return std::nullopt;
  literal = literal.substr(1, literal.size() - 2);
  std::string out;
  for (size_t at = 0; at < literal.size();) {
    const char c = literal[at++];
    if (c == '\\' && at < literal.size()) {
      append_escape(literal, at, out);
    } else {
      out += c;
    }
  }
  return out;
}

std::optional<std::string> decode_raw_unicode(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (text[at] != '\\' || (next != 'u' && next != 'U')) {
      append_utf8(out, static_cast<uint8_t>(text[at]));
      continue;
    }
    const size_t count = next == 'u' ? 4 : 8;
    const auto code = digits(text, at + 2, count, 16);
    if (!code || *code > 0x10ffff) return std::nullopt;
    append_utf8(out, *code);
    at += 1 + count;
  }
  return out;
}

std::optional<std::string> encode_latin1(std::string_view utf8) {
  std::string out;
  for (size_t at = 0; at < utf8.size(); ++at) {
    const auto byte = static_cast<uint8_t>(utf8[at]);
    if (byte < 0x80) {
      out += utf8[at];
    } else if ((byte == 0xc2 || byte == 0xc3) && at + 1 < utf8.size() &&
               (static_cast<uint8_t>(utf8[at + 1]) & 0xc0) == 0x80) {
      out += static_cast<char>((byte & 3) << 6 | (static_cast<uint8_t>(utf8[++at]) & 0x3f));
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<int64_t> parse_pickled_integer(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  if (!text.empty() && text.back() == 'L') text.remove_suffix(1);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  int64_t value = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace headroom
