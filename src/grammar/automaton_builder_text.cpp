// The states of characters as UTF-8, and of a choice of texts.
#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "grammar/automaton_builder.h"

namespace headroom {
namespace {

constexpr unsigned kContinuation = 0x80;

// A range for each byte of a sequence.
struct Utf8Sequence {
  std::array<uint8_t, 4> first{}, last{};
  size_t length = 0;
};

size_t utf8_length(char32_t code) { return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4; }

std::array<uint8_t, 4> utf8_bytes(char32_t code, size_t length) {
  static constexpr unsigned kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  std::array<uint8_t, 4> bytes{};
  for (size_t i = length; i-- > 1; code >>= 6) bytes[i] = static_cast<uint8_t>(kContinuation | (code & 0x3F));
  bytes[0] = static_cast<uint8_t>(kLead[length] | code);
  return bytes;
}

// Splits a range into sequences of byte ranges.
void split_range(char32_t first, char32_t last, std::vector<Utf8Sequence>& out) {
  static constexpr char32_t kLongest[] = {0x7F, 0x7FF, 0xFFFF};
  for (const char32_t end : kLongest)
    if (first <= end && last > end) {
      split_range(first, end, out);
      return split_range(end + 1, last, out);
    }
  const size_t length = utf8_length(last);
  for (size_t tail = 1; tail < length; ++tail) {
    const char32_t mask = (char32_t{1} << (6 * tail)) - 1;
    if ((first & ~mask) == (last & ~mask)) continue;
    if ((first & mask) != 0) {
      split_range(first, first | mask, out);
      return split_range((first | mask) + 1, last, out);
    }
    if ((last & mask) != mask) {
      split_range(first, (last & ~mask) - 1, out);
      return split_range(last & ~mask, last, out);
    }
  }
  out.push_back({utf8_bytes(first, length), utf8_bytes(last, length), length});
}

}  // namespace

GrammarStateId AutomatonBuilder::code_points(const CodePointSet& set, GrammarStateId next) {
  std::vector<Utf8Sequence> sequences;
  for (const CodePointRange& range : set.ranges()) split_range(range.first, range.last, sequences);
  std::map<std::tuple<uint8_t, uint8_t, GrammarStateId>, GrammarStateId> tails;
  std::map<GrammarStateId, ByteSet> leads;  // by the state after them
  for (const Utf8Sequence& sequence : sequences) {
    GrammarStateId state = next;
    for (size_t i = sequence.length - 1; i > 0; --i) {
      const std::tuple key{sequence.first[i], sequence.last[i], state};
      const auto found = tails.find(key);
      state = found != tails.end() ? found->second : bytes(ByteSet::range(sequence.first[i], sequence.last[i]), state);
      tails[key] = state;
    }
    leads[state].add(ByteSet::range(sequence.first[0], sequence.last[0]));
  }
  std::vector<GrammarStateId> alternatives;
  for (const auto& lead : leads) alternatives.push_back(bytes(lead.second, lead.first));
  return any_of(alternatives);
}

GrammarStateId AutomatonBuilder::one_of(const std::vector<std::string>& texts, GrammarStateId next) {
  if (texts.empty()) return any_of({});
  return texts_from(texts, 0, texts.size(), 0, next);
}

// For texts [begin, end), which are equal before `at`.
GrammarStateId AutomatonBuilder::texts_from(const std::vector<std::string>& texts, size_t begin, size_t end, size_t at,
                                            GrammarStateId next) {
  step();
  const std::string &first = texts[begin], &last = texts[end - 1];
  const auto differs = std::mismatch(first.begin() + static_cast<std::ptrdiff_t>(at), first.end(),
                                     last.begin() + static_cast<std::ptrdiff_t>(at), last.end());
  const auto alike = static_cast<size_t>(differs.first - first.begin());
  const std::string_view shared = std::string_view(first).substr(at, alike - at);
  if (end - begin == 1) return literal(shared, next);
  std::vector<GrammarStateId> alternatives;
  size_t from = begin;
  if (first.size() == alike) {
    alternatives.push_back(next);
    ++from;
  }
  while (from < end) {
    size_t to = from + 1;
    while (to < end && texts[to][alike] == texts[from][alike]) ++to;
    alternatives.push_back(texts_from(texts, from, to, alike, next));
    from = to;
  }
  return literal(shared, any_of(alternatives));
}

}  // namespace headroom
