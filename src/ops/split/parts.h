// The widths that split and concat work with, read from their attributes by rules and kernels alike.
//
// With attribute "groups" G a row consists of G runs, each with all the sizes, and part i takes its columns of every
// run: for a projection to queries, keys and values that is stored head by head.
#pragma once

#include <charconv>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/attrs.h"

namespace headroom {

// Attribute "sizes": positive integers separated by commas, "576,192,192".
inline std::vector<int64_t> parse_sizes(std::string_view op, const Attrs& attrs) {
  const std::string_view text = attrs.text("sizes");
  std::vector<int64_t> sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int64_t size = 0;
    const auto [rest, error] = std::from_chars(at, end, size);
    HR_CHECK(error == std::errc{} && size >= 1 && size <= int64_t{1} << 31, "{}: sizes '{}'", op, text);
    sizes.push_back(size);
    if (rest == end) return sizes;
    HR_CHECK(*rest == ',' && sizes.size() < 4096, "{}: sizes '{}'", op, text);
    at = rest + 1;
  }
}

inline int64_t parse_groups(std::string_view op, const Attrs& attrs) {
  const int64_t groups = attrs.integer("groups", 1);
  HR_CHECK(groups >= 1 && groups <= 1 << 20, "{}: {} groups", op, groups);
  return groups;
}

// A run of columns of concat's result: those of an input, or zeros (`input` < 0).
struct ConcatPart {
  int64_t size = 0;
  int input = -1;
};

// `widths` are those of the inputs within one group. Without attribute "present" every part is an input; with it, a
// character for each entry of "sizes" says whether there is an input ('1') or not ('0').
inline std::vector<ConcatPart> layout_concat(std::span<const int64_t> widths, const Attrs& attrs) {
  std::vector<ConcatPart> parts;
  if (!attrs.has("present")) {
    for (size_t i = 0; i < widths.size(); ++i) parts.push_back({widths[i], static_cast<int>(i)});
    return parts;
  }
  const std::vector<int64_t> sizes = parse_sizes("concat", attrs);
  const std::string_view present = attrs.text("present");
  HR_CHECK(present.size() == sizes.size(), "concat: present '{}' for {} sizes", present, sizes.size());
  size_t next = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool here = present[i] == '1';
    HR_CHECK(!here || (next < widths.size() && widths[next] == sizes[i]), "concat: part {} is not an input", i);
    parts.push_back({sizes[i], here ? static_cast<int>(next++) : -1});
  }
  HR_CHECK(next == widths.size(), "concat: {} inputs for present '{}'", widths.size(), present);
  return parts;
}

}  // namespace headroom
