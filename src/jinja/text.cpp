#include "jinja/text.h"

#include <algorithm>

namespace headroom::jinja {
namespace {

// Bytes of the well-formed character at `at`, 1 for any other byte.
size_t point_bytes(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  const unsigned lead = byte(0);
  const size_t length = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 1;
  return length;
}

// Where the character that ends before `end` begins.
size_t point_before(std::string_view text, size_t end) {
  for (size_t length = 2; length <= 4 && length <= end; ++length)
    if (point_bytes(text, end - length) == length) return end - length;
  return end - 1;
}

char32_t point_at(std::string_view text, size_t at) { return next_point(text, at); }

bool is_line_end(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

std::vector<std::string_view> reversed(std::vector<std::string_view> parts) {
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace

char32_t next_point(std::string_view text, size_t& at) {
  const size_t length = point_bytes(text, at);
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  char32_t point = byte(0);
  if (length > 1) point &= 0x7fu >> length;
  for (size_t i = 1; i < length; ++i) point = point << 6 | (byte(i) & 0x3f);
  at += length;
  return point;
}

void append_point(std::string& text, char32_t point) {
  const auto put = [&text](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | point >> 6);
  } else {
    if (point < 0x10000) {
      put(0xe0 | point >> 12);
    } else {
      put(0xf0 | point >> 18);
      put(0x80 | (point >> 12 & 0x3f));
    }
    put(0x80 | (point >> 6 & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

size_t count_points(std::string_view text) {
  if (is_ascii(text)) return text.size();
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += point_bytes(text, at)) ++count;
  return count;
}

size_t byte_of_point(std::string_view text, size_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += point_bytes(text, at);
  return at;
}

std::vector<std::string_view> split_points(std::string_view text) {
  std::vector<std::string_view> points;
  for (size_t at = 0; at < text.size();) {
    const size_t length = point_bytes(text, at);
    points.push_back(text.substr(at, length));
    at += length;
  }
  return points;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

std::string_view strip(std::string_view text, Side side, std::optional<std::string_view> characters) {
  const std::vector<std::string_view> set = characters ? split_points(*characters) : std::vector<std::string_view>();
  const auto goes = [&](std::string_view point) {
    return characters ? std::find(set.begin(), set.end(), point) != set.end() : is_space(point_at(point, 0));
  };
  size_t begin = 0, end = text.size();
  while (side != Side::right && begin < end && goes(text.substr(begin, point_bytes(text, begin))))
    begin += point_bytes(text, begin);
  while (side != Side::left && begin < end) {
    const size_t last = point_before(text, end);
    if (!goes(text.substr(last, end - last))) break;
    end = last;
  }
  return text.substr(begin, end - begin);
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator, int64_t most, bool from_right) {
  std::vector<std::string_view> parts;
  for (; most != 0; --most) {
    const size_t at = from_right ? text.rfind(separator) : find_text(text, separator);
    if (at == std::string_view::npos) break;
    const size_t behind = at + separator.size();
    parts.push_back(from_right ? text.substr(behind) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(behind);
  }
  parts.push_back(text);
  return from_right ? reversed(std::move(parts)) : parts;
}

std::vector<std::string_view> split_space(std::string_view text, int64_t most, bool from_right) {
  std::vector<std::string_view> parts;
  const Side side = from_right ? Side::right : Side::left;
  for (text = strip(text, side); !text.empty(); text = strip(text, side), --most) {
    if (most == 0) {
      parts.push_back(text);
      break;
    }
    size_t begin = 0, end = text.size();
    if (from_right) {
      begin = end;
      while (begin > 0 && !is_space(point_at(text, point_before(text, begin)))) begin = point_before(text, begin);
    } else {
      for (end = 0; end < text.size() && !is_space(point_at(text, end));) end += point_bytes(text, end);
    }
    parts.push_back(text.substr(begin, end - begin));
    text = from_right ? text.substr(0, begin) : text.substr(end);
  }
  return from_right ? reversed(std::move(parts)) : parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0, at = 0; at < text.size();) {
    const size_t end = at;
    const char32_t c = next_point(text, at);
    if (is_line_end(c)) {
      if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
      lines.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
      begin = at;
    } else if (at == text.size()) {
      lines.push_back(text.substr(begin));
    }
  }
  return lines;
}

}  // namespace headroom::jinja
