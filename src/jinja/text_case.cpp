#include <algorithm>

#include "jinja/problem.h"
#include "jinja/text.h"
#include "jinja/text_tables.h"

namespace headroom::jinja {
namespace {

bool is_ascii_upper(char32_t c) { return c >= 'A' && c <= 'Z'; }
bool is_ascii_lower(char32_t c) { return c >= 'a' && c <= 'z'; }

// The last element that begins at or before `c`, or nullptr.
template <typename T>
const T* candidate(std::span<const T> table, char32_t c, char32_t T::*first) {
  const auto above = std::upper_bound(table.begin(), table.end(), c,
                                      [first](char32_t point, const T& element) { return point < element.*first; });
  return above == table.begin() ? nullptr : &*(above - 1);
}

bool append_special(std::span<const CaseSpecial> table, char32_t c, std::string& to) {
  const CaseSpecial* special = candidate(table, c, &CaseSpecial::from);
  if (special == nullptr || special->from != c) return false;
  for (const char32_t point : special->to)
    if (point != 0) append_point(to, point);
  return true;
}

char32_t mapped(std::span<const CaseRun> table, char32_t c) {
  const CaseRun* run = candidate(table, c, &CaseRun::first);
  if (run == nullptr || c > run->last || (c - run->first) % run->stride != 0) return c;
  return static_cast<char32_t>(static_cast<int32_t>(c) + run->delta);
}

void append_upper(char32_t c, std::string& to) {
  if (c < 0x80) return append_point(to, is_ascii_lower(c) ? c - 32 : c);
  if (!append_special(text_tables().upper_special, c, to)) append_point(to, mapped(text_tables().upper, c));
}

void append_lower(char32_t c, std::string& to) {
  if (c < 0x80) return append_point(to, is_ascii_upper(c) ? c + 32 : c);
  if (c == 0x3a3) refuse("the lower case of a capital sigma");
  if (!append_special(text_tables().lower_special, c, to)) append_point(to, mapped(text_tables().lower, c));
}

}  // namespace

std::string upper(std::string_view text) {
  std::string to;
  for (size_t at = 0; at < text.size();) append_upper(next_point(text, at), to);
  return to;
}

std::string lower(std::string_view text) {
  std::string to;
  for (size_t at = 0; at < text.size();) append_lower(next_point(text, at), to);
  return to;
}

std::string capitalize(std::string_view text) {
  std::string to;
  if (text.empty()) return to;
  size_t at = 0;
  const char32_t first = next_point(text, at);
  if (first < 0x80 || !append_special(text_tables().title_special, first, to)) append_upper(first, to);
  return to + lower(text.substr(at));
}

std::string title(std::string_view text) {
  if (!is_ascii(text)) refuse("the method 'title' of a text beyond ASCII");
  std::string to(text);
  bool inside = false;
  for (char& c : to) {
    const auto point = static_cast<char32_t>(static_cast<unsigned char>(c));
    const bool letter = is_ascii_upper(point) || is_ascii_lower(point);
    if (inside && is_ascii_upper(point)) c = static_cast<char>(c + 32);
    if (!inside && is_ascii_lower(point)) c = static_cast<char>(c - 32);
    inside = letter;
  }
  return to;
}

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7f;
  const PointRange* range = candidate(text_tables().hidden, c, &PointRange::first);
  return range == nullptr || c > range->last;
}

}  // namespace headroom::jinja
