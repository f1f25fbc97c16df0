#include "tokenizer/normal_form.h"

#include <algorithm>

#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

using namespace unicode;

// Hangul syllables are composed by arithmetic (The Unicode Standard, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTrails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTrailCount = 28, kSyllableCount = 11172;
// No character below U+00A0 decomposes; none below U+0300 has a combining class or composes with the one before it.
constexpr char32_t kFirstDecomposable = 0xA0, kFirstCombining = 0x300;

const CanonicalPair* find_pair(char32_t code) {
  const CanonicalPair* end = canonical_pairs + canonical_pairs_size;
  const auto less = [](const CanonicalPair& pair, char32_t value) { return pair.code < value; };
  const CanonicalPair* found = std::lower_bound(canonical_pairs, end, code, less);
  return found != end && found->code == code ? found : nullptr;
}

const CompatibilityRun* find_compatibility_run(char32_t code) {
  const CompatibilityRun* end = compatibility_runs + compatibility_runs_size;
  const auto less = [](char32_t value, const CompatibilityRun& run) { return value < run.code; };
  const CompatibilityRun* found = std::upper_bound(compatibility_runs, end, code, less);
  if (found == compatibility_runs) return nullptr;
  --found;
  return code - found->code < found->count ? found : nullptr;
}

const CompatibilityString* find_compatibility_string(char32_t code) {
  const CompatibilityString* end = compatibility_strings + compatibility_strings_size;
  const auto less = [](const CompatibilityString& entry, char32_t value) { return entry.code < value; };
  const CompatibilityString* found = std::lower_bound(compatibility_strings, end, code, less);
  return found != end && found->code == code ? found : nullptr;
}

uint8_t combining_class(char32_t code) {
  if (code < kFirstCombining) return 0;
  const Run* run = find_run(combining_classes, combining_classes_size, code);
  return run != nullptr ? run->value : 0;
}

bool is_syllable(char32_t code) { return code - kSyllables < kSyllableCount; }

}  // namespace

struct NormalFormConverter::Mark {
  char32_t code;
  uint8_t combining;
};

NormalFormConverter::NormalFormConverter(NormalForm form)
    : form_(form),
      composes_(form == NormalForm::nfc || form == NormalForm::nfkc),
      compatibility_(form == NormalForm::nfkc || form == NormalForm::nfkd) {
  for (size_t i = 0; i < canonical_pairs_size; ++i)
    if (canonical_pairs[i].composes != 0) by_parts_.push_back(static_cast<uint16_t>(i));
  std::sort(by_parts_.begin(), by_parts_.end(), [](uint16_t a, uint16_t b) {
    const CanonicalPair &left = canonical_pairs[a], &right = canonical_pairs[b];
    return left.first != right.first ? left.first < right.first : left.second < right.second;
  });
  by_parts_.shrink_to_fit();
  for (const uint16_t index : by_parts_) {
    const char32_t second = canonical_pairs[index].second;
    if (combining_class(second) == 0) starting_seconds_.push_back(second);
  }
  std::sort(starting_seconds_.begin(), starting_seconds_.end());
  starting_seconds_.erase(std::unique(starting_seconds_.begin(), starting_seconds_.end()), starting_seconds_.end());
  starting_seconds_.shrink_to_fit();
}

int64_t NormalFormConverter::memory_bytes() const {
  return static_cast<int64_t>(by_parts_.capacity() * sizeof(uint16_t) +
                              starting_seconds_.capacity() * sizeof(char32_t));
}

void NormalFormConverter::decompose(char32_t code, std::vector<Mark>& out) const {
  if (code < kFirstDecomposable) {
    out.push_back({code, 0});
    return;
  }
  if (is_syllable(code)) {
    const char32_t index = code - kSyllables;
    out.push_back({kLeads + index / (kVowelCount * kTrailCount), 0});
    out.push_back({kVowels + index % (kVowelCount * kTrailCount) / kTrailCount, 0});
    if (index % kTrailCount != 0) out.push_back({kTrails + index % kTrailCount, 0});
    return;
  }
  if (const CanonicalPair* pair = find_pair(code)) {
    decompose(pair->first, out);
    if (pair->second != 0) decompose(pair->second, out);
    return;
  }
  if (compatibility_) {
    if (const CompatibilityRun* run = find_compatibility_run(code)) {
      code = run->target + (code - run->code);
    } else if (const CompatibilityString* entry = find_compatibility_string(code)) {
      for (uint32_t i = 0; i < entry->length; ++i) {
        const char32_t part = compatibility_pool[entry->offset + i];
        out.push_back({part, combining_class(part)});
      }
      return;
    }
  }
  out.push_back({code, combining_class(code)});
}

// The composition of two characters, or 0.
char32_t NormalFormConverter::compose(char32_t first, char32_t second) const {
  if (first - kLeads < kLeadCount && second - kVowels < kVowelCount)
    return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTrailCount;
  if (is_syllable(first) && (first - kSyllables) % kTrailCount == 0 && second > kTrails &&
      second < kTrails + kTrailCount)
    return first + (second - kTrails);
  const auto less = [&](uint16_t index, int) {
    const CanonicalPair& pair = canonical_pairs[index];
    return pair.first != first ? pair.first < first : pair.second < second;
  };
  const auto found = std::lower_bound(by_parts_.begin(), by_parts_.end(), 0, less);
  if (found == by_parts_.end()) return 0;
  const CanonicalPair& pair = canonical_pairs[*found];
  return pair.first == first && pair.second == second ? pair.code : 0;
}

void NormalFormConverter::compose_all(std::vector<Mark>& marks) const {
  size_t kept = 0;
  size_t starter = marks.size();  // index of the last starter among the kept ones; marks.size(): none yet
  uint8_t last_class = 0;         // combining class of the last kept mark after the starter; 0: none
  for (size_t i = 0; i < marks.size(); ++i) {
    const Mark mark = marks[i];
    const bool blocked = last_class != 0 && last_class >= mark.combining;
    const bool adjacent = starter + 1 == kept;
    if (starter < marks.size() && !blocked && (mark.combining != 0 || adjacent)) {
      if (const char32_t composed = compose(marks[starter].code, mark.code)) {
        marks[starter].code = composed;
        continue;
      }
    }
    if (mark.combining == 0) starter = kept;
    last_class = mark.combining;
    marks[kept++] = mark;
  }
  marks.resize(kept);
}

void NormalFormConverter::flush(std::vector<Mark>& pending, std::string& out) const {
  const auto is_starter = [](const Mark& mark) { return mark.combining == 0; };
  for (auto begin = pending.begin(); begin != pending.end();) {
    begin = std::find_if_not(begin, pending.end(), is_starter);
    const auto end = std::find_if(begin, pending.end(), is_starter);
    std::stable_sort(begin, end, [](const Mark& a, const Mark& b) { return a.combining < b.combining; });
    begin = end;
  }
  if (composes_) compose_all(pending);
  for (const Mark& mark : pending) append_utf8(mark.code, out);
  pending.clear();
}

// Whether nothing before the character that decomposes to `parts` can combine with it or be reordered past it.
bool NormalFormConverter::begins_segment(const std::vector<Mark>& parts) const {
  const char32_t first = parts.front().code;
  if (parts.front().combining != 0) return false;
  if (!composes_ || first < kFirstCombining) return true;
  if (first - kVowels < kVowelCount || (first > kTrails && first < kTrails + kTrailCount)) return false;
  return !std::binary_search(starting_seconds_.begin(), starting_seconds_.end(), first);
}

bool NormalFormConverter::keeps_apart(char32_t left, char32_t right) const {
  std::vector<Mark> parts;
  decompose(left, parts);
  if (!begins_segment(parts)) return false;
  if (composes_) return is_inert(right);
  parts.clear();
  decompose(right, parts);
  return begins_segment(parts);
}

// Whether `code` never changes, never combines with a neighbour, and separates its neighbours from each other.
bool NormalFormConverter::is_inert(char32_t code) const {
  std::vector<Mark> parts;
  decompose(code, parts);
  if (parts.size() != 1 || parts[0].code != code || !begins_segment(parts)) return false;
  if (!composes_) return true;
  if (code - kLeads < kLeadCount) return false;
  return std::none_of(by_parts_.begin(), by_parts_.end(),
                      [&](uint16_t index) { return canonical_pairs[index].first == code; });
}

std::string NormalFormConverter::convert(std::string_view utf8) const {
  const auto quick = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  size_t at = static_cast<size_t>(std::find_if_not(utf8.begin(), utf8.end(), quick) - utf8.begin());
  if (at == utf8.size()) return std::string(utf8);
  if (at > 0) --at;  // the last ASCII character may combine with what follows
  std::string out(utf8.substr(0, at));
  out.reserve(utf8.size());
  std::vector<Mark> pending, parts;
  while (at < utf8.size()) {
    const Utf8Char next = decode_utf8(utf8, at);
    parts.clear();
    decompose(next.code, parts);
    if (begins_segment(parts)) flush(pending, out);
    pending.insert(pending.end(), parts.begin(), parts.end());
    at += next.bytes;
  }
  flush(pending, out);
  return out;
}

}  // namespace headroom
