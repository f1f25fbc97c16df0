// Unicode's case mappings and unprintable characters beyond ASCII.
#pragma once

#include <cstdint>
#include <span>

namespace headroom::jinja {

// Every `stride`-th code point of first ... last maps to itself + delta.
struct CaseRun {
  char32_t first, last;
  uint32_t stride;
  int32_t delta;
};

// A code point that maps to several; 0 pads.
struct CaseSpecial {
  char32_t from;
  char32_t to[3];
};

struct PointRange {
  char32_t first, last;
};

// All in ascending order. Title case is upper case if `title_special` has no entry.
struct TextTables {
  std::span<const CaseRun> upper, lower;
  std::span<const CaseSpecial> upper_special, lower_special, title_special;
  std::span<const PointRange> hidden;
};

const TextTables& text_tables();

}  // namespace headroom::jinja
