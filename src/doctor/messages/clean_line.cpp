#include "doctor/messages/clean_line.h"

#include <algorithm>
#include <cstdint>

#include "doctor/messages/log_prefix.h"

namespace headroom::doctor {
namespace {

constexpr char kEscape = '\x1b';

// Length of the escape sequence at `at`, with its introducer; 0 when there is none.
size_t ansi_length(std::string_view s, size_t at) {
  size_t introducer = 0;
  if (s[at] == kEscape) {
    introducer = 1;
  } else if (s.substr(at, 3) == "^[[") {
    introducer = 2;
  } else if (s.substr(at, 5) == "#033[") {
    introducer = 4;
  } else {
    return 0;
  }
  size_t end = at + introducer;
  if (end >= s.size()) return introducer;
  if (s[end] == ']') {  // an operating system command ends with BEL or ESC backslash
    while (end < s.size() && s[end] != '\a' && s[end] != kEscape) ++end;
    return std::min(s.size(), end + 1) - at;
  }
  if (s[end] != '[') return introducer + 1;
  ++end;
  while (end < s.size() && (s[end] < 0x40 || s[end] > 0x7e) && end - at < 64) ++end;
  return std::min(s.size(), end + 1) - at;
}

void append_code_point(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 63));
  } else {
    text += static_cast<char>(0xe0 | (code >> 12));
    text += static_cast<char>(0x80 | ((code >> 6) & 63));
    text += static_cast<char>(0x80 | (code & 63));
  }
}

uint32_t hexadecimal(std::string_view digits) {
  uint32_t value = 0;
  for (const char c : digits) {
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<uint32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + static_cast<uint32_t>(lower - 'a' + 10);
    } else {
      return '?';
    }
  }
  return value;
}

// The unescaped JSON string after the quote at `at`; a truncated string gives what is there.
std::string json_string(std::string_view s, size_t at) {
  std::string text;
  for (; at < s.size() && s[at] != '"'; ++at) {
    if (s[at] != '\\' || at + 1 >= s.size()) {
      text += s[at];
      continue;
    }
    switch (s[++at]) {
      case 'n':
        text += '\n';
        break;
      case 't':
        text += '\t';
        break;
      case 'r':
        text += '\r';
        break;
      case 'b':
      case 'f':
        break;
      case 'u':
        if (at + 4 < s.size()) append_code_point(text, hexadecimal(s.substr(at + 1, 4)));
        at += 4;
        break;
      default:
        text += s[at];
    }
  }
  return text;
}

// The text in a JSON record of a container's or service's log; nullopt when the line is not such a record.
std::optional<std::string> text_of_json_record(std::string_view line) {
  const size_t start = line.find_first_not_of(' ');
  if (start == std::string_view::npos || line[start] != '{') return std::nullopt;
  for (const std::string_view key : {"\"log\":", "\"message\":", "\"msg\":", "\"textPayload\":", "\"line\":",
                                     "\"text\":", "\"event\":", "\"body\":", "\"error\":"}) {
    size_t at = line.find(key);
    if (at == std::string_view::npos) continue;
    at += key.size();
    while (at < line.size() && line[at] == ' ') ++at;
    if (at < line.size() && line[at] == '"') return json_string(line, at + 1);
  }
  return std::nullopt;
}

void clean_piece(std::string_view raw, bool may_be_json, std::vector<CleanLine>& lines);

void split_and_clean(std::string_view text, bool may_be_json, std::vector<CleanLine>& lines) {
  while (true) {
    const size_t end = std::min(text.find('\r'), text.find('\n'));
    const std::string_view piece = text.substr(0, end);
    if (!piece.empty() || end == std::string_view::npos) clean_piece(piece, may_be_json, lines);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
    if (text.empty()) return;
  }
}

void clean_piece(std::string_view raw, bool may_be_json, std::vector<CleanLine>& lines) {
  CleanLine line;
  const std::string plain = without_ansi(raw);
  const std::string_view rest = without_prefixes(plain, line.rank);
  if (may_be_json) {
    if (const auto inner = text_of_json_record(rest)) {
      const size_t before = lines.size();
      split_and_clean(*inner, false, lines);
      for (size_t i = before; i < lines.size(); ++i) {
        if (!lines[i].rank) lines[i].rank = line.rank;
      }
      return;
    }
  }
  line.text = rest;
  lines.push_back(std::move(line));
}

// Length of the valid UTF-8 sequence at `at`; 0 when the bytes are not valid.
size_t utf8_length(std::string_view s, size_t at) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const unsigned lead = byte(at);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(at + 1) < 0xa0) || (lead == 0xf0 && byte(at + 1) < 0x90);
  const bool outside = (lead == 0xed && byte(at + 1) > 0x9f) || (lead == 0xf4 && byte(at + 1) > 0x8f);
  return overlong || outside ? 0 : length;
}

}  // namespace

std::string without_ansi(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  const auto special = [](char c) { return c == kEscape || c == '^' || c == '#' || c == '\b' || c == '\0'; };
  for (size_t at = 0; at < raw.size();) {
    size_t end = at;
    while (end < raw.size() && !special(raw[end])) ++end;
    text.append(raw, at, end - at);
    at = end;
    if (at == raw.size()) break;
    const char c = raw[at];
    if (c == kEscape || c == '^' || c == '#') {
      if (const size_t length = ansi_length(raw, at)) {
        at += length;
        continue;
      }
    }
    if (c == '\b') {
      if (!text.empty()) text.pop_back();
    } else if (c != '\0') {
      text += c;
    }
    ++at;
  }
  return text;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool control = length == 1 && (byte < 0x20 || byte == 0x7f) && byte != '\n' && byte != '\t';
    if (length == 0 || control) {
      out += '?';
      ++at;
    } else {
      out.append(text.substr(at, length));
      at += length;
    }
  }
  return out;
}

void clean_lines(std::string_view raw, std::vector<CleanLine>& lines) { split_and_clean(raw, true, lines); }

}  // namespace headroom::doctor
