// Properties of Unicode 16.0 code points, as regular expressions of tokenizers use them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tokenizer/unicode_tables.h"

namespace headroom::unicode {

// In the order of the generated tables.
enum class Category : uint8_t { Lu, Ll, Lt, Lm, Lo, M, Nd, Nl, No, Pc, P, S, Zs, Zl, Cc, other };

constexpr uint16_t bit(Category category) { return static_cast<uint16_t>(1U << static_cast<unsigned>(category)); }

// Sets of categories, as bits.
constexpr uint16_t kLetter =
    bit(Category::Lu) | bit(Category::Ll) | bit(Category::Lt) | bit(Category::Lm) | bit(Category::Lo);
constexpr uint16_t kMark = bit(Category::M);
constexpr uint16_t kNumber = bit(Category::Nd) | bit(Category::Nl) | bit(Category::No);
constexpr uint16_t kPunctuation = bit(Category::Pc) | bit(Category::P);
constexpr uint16_t kSymbol = bit(Category::S);
constexpr uint16_t kSeparator = bit(Category::Zs) | bit(Category::Zl);

// General category; code points above U+10FFFF and surrogates are `other`.
Category category(char32_t code);

inline bool in_categories(char32_t code, uint16_t categories) { return (bit(category(code)) & categories) != 0; }

// White_Space, what \s matches.
inline bool is_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  return code == 0x85 || code == 0xA0 || (code >= 0x1680 && in_categories(code, kSeparator));
}

// What \w matches in Oniguruma, the engine for the patterns of a tokenizer.json.
bool is_word(char32_t code);
// The same within a class in brackets: without Latin-1's superscripts and fractions.
bool is_word_in_brackets(char32_t code);

// What \w matches for added tokens with `single_word` and in the pre-tokenizer Whitespace: also U+200C and U+200D, but
// not Latin-1's superscripts and fractions.
bool is_added_token_word(char32_t code);

// What the pre-tokenizers Digits and Punctuation treat as a digit and as punctuation.
bool is_digits_digit(char32_t code);
bool is_punctuation_mark(char32_t code);

// The run of a sorted table that contains `code`, or null.
inline const Run* find_run(const Run* runs, size_t count, char32_t code) {
  const Run* end = runs + count;
  const Run* found = std::lower_bound(runs, end, code, [](const Run& run, char32_t value) { return run.last < value; });
  return found != end && found->first <= code ? found : nullptr;
}

}  // namespace headroom::unicode
