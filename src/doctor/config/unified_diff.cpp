#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/config/patch.h"

namespace headroom::doctor {
namespace {

constexpr size_t kContext = 3;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size() - 1) + 1;
    lines.push_back(text.substr(start, end - start));
    start = end;
  }
  return lines;
}

struct Change {
  size_t before, after;              // first differing line of each text
  size_t before_count, after_count;  // number of differing lines
};

// Edits touch few lines: walks both texts, and at a difference takes the nearest pair of lines that are equal again.
std::vector<Change> changes_of(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  std::vector<Change> changes;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      ++i;
      ++j;
      continue;
    }
    size_t di = a.size() - i, dj = b.size() - j;
    bool found = false;
    for (size_t sum = 1; sum <= di + dj && !found && sum < 400; ++sum)
      for (size_t x = 0; x <= sum && !found; ++x)
        if (i + x < a.size() && j + (sum - x) < b.size() && a[i + x] == b[j + (sum - x)]) {
          di = x;
          dj = sum - x;
          found = true;
        }
    changes.push_back({i, j, di, dj});
    i += di;
    j += dj;
  }
  return changes;
}

void append_line(std::string& out, char sign, std::string_view line) {
  out += sign;
  out += line;
  if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
}

}  // namespace

std::string unified_diff(const std::string& name, const std::string& before, const std::string& after) {
  const std::vector<std::string_view> a = lines_of(before), b = lines_of(after);
  const std::vector<Change> changes = changes_of(a, b);
  if (changes.empty()) return {};
  std::string out = fmt::format("--- a/{}\n+++ b/{}\n", name, name);
  for (size_t first = 0; first < changes.size();) {
    size_t last = first;
    while (last + 1 < changes.size() &&
           changes[last + 1].before - (changes[last].before + changes[last].before_count) <= 2 * kContext)
      ++last;
    const Change& head = changes[first];
    const Change& tail = changes[last];
    const size_t lead = std::min(kContext, head.before);
    const size_t a_begin = head.before - lead, b_begin = head.after - lead;
    const size_t a_end = std::min(a.size(), tail.before + tail.before_count + kContext);
    const size_t b_end = std::min(b.size(), tail.after + tail.after_count + kContext);
    const size_t a_count = a_end - a_begin, b_count = b_end - b_begin;
    out += fmt::format("@@ -{},{} +{},{} @@\n", a_count ? a_begin + 1 : a_begin, a_count,
                       b_count ? b_begin + 1 : b_begin, b_count);
    size_t at = a_begin;
    for (size_t i = first; i <= last; ++i) {
      for (; at < changes[i].before; ++at) append_line(out, ' ', a[at]);
      for (size_t k = 0; k < changes[i].before_count; ++k) append_line(out, '-', a[at++]);
      for (size_t k = 0; k < changes[i].after_count; ++k) append_line(out, '+', b[changes[i].after + k]);
    }
    for (; at < a_end; ++at) append_line(out, ' ', a[at]);
    first = last + 1;
  }
  return out;
}

}  // namespace headroom::doctor
