#include "tokenizer/char_set.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr char32_t kLongS = 0x17F, kKelvin = 0x212A;

bool is_ascii_letter(char32_t code) { return (code | 0x20) >= 'a' && (code | 0x20) <= 'z'; }

}  // namespace

void CharSet::seal() {
  ascii_ = {};
  for (char32_t code = 0; code < 0x80; ++code)
    if (looked_up(code)) ascii_[code >> 6] |= uint64_t{1} << (code & 63);
}

bool CharSet::listed(char32_t code) const {
  if (std::any_of(ranges_.begin(), ranges_.end(), [&](Range r) { return code >= r.first && code <= r.last; }))
    return true;
  if (unicode::in_categories(code, categories_)) return true;
  if (spaces_ || other_than_spaces_) {
    const bool space = unicode::is_space(code);
    if (space ? spaces_ : other_than_spaces_) return true;
  }
  if (words_ || other_than_words_) {
    const bool word = in_brackets_ ? unicode::is_word_in_brackets(code) : unicode::is_word(code);
    if (word ? words_ : other_than_words_) return true;
  }
  return false;
}

bool CharSet::looked_up(char32_t code) const {
  bool found = listed(code);
  if (!found && ignores_case_) {
    if (is_ascii_letter(code)) found = listed(code ^ 0x20);
    const char32_t lower = code | 0x20;
    if (code == kLongS || (is_ascii_letter(code) && lower == 's'))
      found = found || listed('s') || listed('S') || listed(kLongS);
    if (code == kKelvin || (is_ascii_letter(code) && lower == 'k'))
      found = found || listed('k') || listed('K') || listed(kKelvin);
  }
  return found != negated_;
}

}  // namespace headroom
