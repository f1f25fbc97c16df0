#include "grammar/code_point_set.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr char32_t kBeforeSurrogates = 0xD7FF, kAfterSurrogates = 0xE000;

}  // namespace

void CodePointSet::add(char32_t first, char32_t last) {
  last = std::min(last, kLast);
  if (first <= kBeforeSurrogates) add_raw(first, std::min(last, kBeforeSurrogates));
  if (last >= kAfterSurrogates) add_raw(std::max(first, kAfterSurrogates), last);
}

void CodePointSet::add_raw(char32_t first, char32_t last) {
  if (first > last) return;
  // The ranges that touch the new one are merged into it.
  const auto begin = std::lower_bound(ranges_.begin(), ranges_.end(), first,
                                      [](const CodePointRange& range, char32_t code) { return range.last + 1 < code; });
  auto end = begin;
  for (; end != ranges_.end() && end->first <= last + 1; ++end) {
    first = std::min(first, end->first);
    last = std::max(last, end->last);
  }
  ranges_.insert(ranges_.erase(begin, end), {first, last});
}

void CodePointSet::add(const CodePointSet& other) {
  for (const CodePointRange& range : other.ranges_) add_raw(range.first, range.last);
}

CodePointSet CodePointSet::complement() const {
  CodePointSet out;
  char32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (range.first > next) out.add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= kLast) out.add(next, kLast);
  return out;
}

CodePointSet CodePointSet::without(const CodePointSet& other) const {
  CodePointSet either = complement();
  either.add(other);
  return either.complement();
}

bool CodePointSet::has(char32_t code) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const CodePointRange& range) { return range.first <= code && code <= range.last; });
}

}  // namespace headroom
