// A set of code points, as a regular expression describes it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tokenizer/unicode.h"

namespace headroom {

// Built by the pattern parser, then immutable.
class CharSet {
 public:
  void add_range(char32_t first, char32_t last) { ranges_.push_back({first, last}); }
  void add_categories(uint16_t categories) { categories_ |= categories; }
  // \s \w; with `inside` false \S \W.
  void add_spaces(bool inside) { (inside ? spaces_ : other_than_spaces_) = true; }
  void add_words(bool inside) { (inside ? words_ : other_than_words_) = true; }
  // Makes the set a class in brackets, where \w is narrower.
  void put_in_brackets() { in_brackets_ = true; }
  void negate() { negated_ = !negated_; }
  // Treats upper and lower case of ASCII letters as equal, also what Unicode folds to them (U+017F, U+212A).
  void ignore_case() { ignores_case_ = true; }
  // Computes the table for ASCII; call it once the set is complete.
  void seal();

  bool contains(char32_t code) const {
    if (code < 0x80) return (ascii_[code >> 6] >> (code & 63) & 1) != 0;
    return looked_up(code);
  }

 private:
  struct Range {
    char32_t first;
    char32_t last;
  };
  bool looked_up(char32_t code) const;
  bool listed(char32_t code) const;

  std::vector<Range> ranges_;
  std::array<uint64_t, 2> ascii_{};
  uint16_t categories_ = 0;
  bool spaces_ = false;
  bool other_than_spaces_ = false;
  bool words_ = false;
  bool other_than_words_ = false;
  bool in_brackets_ = false;
  bool negated_ = false;
  bool ignores_case_ = false;
};

}  // namespace headroom
